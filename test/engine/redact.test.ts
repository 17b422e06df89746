import assert from "node:assert/strict";
import { test } from "node:test";
import { makeRedactor } from "#engine/redact.ts";
import { validRecord, type DataRecord } from "#domain/record.ts";
import { formsOf } from "../flow/canary-search.ts";

const AWKWARD = `pass "q" \\n <b>&amp;' é€ %41+/=? word`;

test("a secret is found in every form in which software writes it down", () => {
  const redactor = makeRedactor([AWKWARD]);
  for (const [form, bytes] of formsOf(AWKWARD)) {
    const written = bytes.toString("utf8");
    for (const clean of [
      redactor.text(`before ${written} after`),
      redactor.body(`before ${written} after`),
      redactor.message(`before ${written} after`),
    ])
      assert.equal(clean, "before [REDACTED] after", form);
    const parsed: unknown = JSON.parse(redactor.json({ [written]: [`x ${written}`] }));
    assert.deepEqual(parsed, { "[REDACTED]": ["x [REDACTED]"] }, form);
  }
  const escapedBySome = [
    "pass &#34;q&#34; \\n &lt;b&gt;&amp;amp;&#39; é€ %41+/=? word",
    "pass &quot;q&quot; \\n &lt;b&gt;&amp;amp;&#x27; é€ %41+/=? word",
    `pass "q" \\n &lt;b&gt;&amp;amp;' é€ %41+/=? word`,
    `pass \\"q\\" \\\\n <b>&amp;' é€ %41+\\/=? word`,
  ];
  for (const text of escapedBySome) assert.equal(redactor.text(text), "[REDACTED]", text);
  const token = Buffer.from(`user-name:${AWKWARD}`).toString("base64");
  assert.match(redactor.text(token), /^[\w+/]{13,16}\[REDACTED\][\w+/=]{0,4}$/, "inside a Basic token");
});

test("a host name has no capitals: messages are cleaned all the same", () => {
  const redactor = makeRedactor(["HunterTwo"]);
  assert.equal(redactor.message("redirected to huntertwo.example"), "redirected to [REDACTED].example");
  assert.equal(redactor.text("a huntertwo among the data"), "a huntertwo among the data");
});

test("what is stored stays JSON and keeps its shape, whatever the secret is", () => {
  const record: DataRecord = {
    data: {
      pin: 123456,
      list: [1, 9123456.5, true, null],
      isValid: "isValid",
      ["__proto__"]: "ok",
      "a,b": "c",
    },
    errors: [{ field: "isValid", code: "errors", message: `is "123456"` }],
    isValid: false,
  };
  const secrets = ["123456", "isValid", "errors", `":"ok"`, `,"list":[`, `":false}`, `","message":"`];
  const redactor = makeRedactor(secrets);
  const [line = "", rest] = redactor.lines([record]).split("\n");
  assert.equal(rest, "");
  assert.deepEqual(JSON.parse(line), {
    data: {
      pin: "[REDACTED]",
      list: [1, "9[REDACTED].5", true, null],
      "[REDACTED]": "[REDACTED]",
      ["__proto__"]: "ok",
      "a,b": "c",
    },
    errors: [{ field: "[REDACTED]", code: "[REDACTED]", message: `is "[REDACTED]"` }],
    isValid: false,
  });
  assert.equal(redactor.body(`{"pin": 123456, "x": [true]}`), `{"pin":"[REDACTED]","x":[true]}`);
  assert.equal(redactor.body(`pin=123456;`), "pin=[REDACTED];");
  const deep = `${"[".repeat(50_000)}"123456"${"]".repeat(50_000)}`;
  assert.ok(!redactor.body(deep).includes("123456"), "too deep to be written again");
});

test("what holds no secret is left as it is, to the byte", () => {
  const redactor = makeRedactor([AWKWARD, "123456", "short"]);
  const records = [validRecord({ a: 1.5, b: "short 12345", c: { "\u2028": "é" } })];
  assert.equal(redactor.lines(records), `${JSON.stringify(records[0])}\n`);
  assert.equal(redactor.body(`{ "a":  1.50 }`), `{ "a":  1.50 }`);
  assert.equal(redactor.changes, 0);
  // Design, page 6, T14: values under six characters can't be matched.
  assert.equal(makeRedactor(["short", ""]).text("short"), "short");
});

test("the changes are counted, for the run's warning", () => {
  const redactor = makeRedactor(["hunter-two"]);
  redactor.lines([validRecord({ a: "hunter-two", b: "hunter-two hunter-two" })]);
  redactor.text("nothing");
  assert.equal(redactor.changes, 2);
});

test("what a run is given while it runs is looked for in files as well", () => {
  const redactor = makeRedactor([]);
  assert.equal(redactor.longest, 0);
  redactor.add(["HunterTwo"]);
  assert.ok(redactor.longest >= "HunterTwo".length);
  assert.equal(redactor.bytes("x HunterTwo y"), "x [REDACTED] y");
  assert.equal(redactor.text("HunterTwo"), "[REDACTED]");
});

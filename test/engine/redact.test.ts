import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { makeRedactor } from "#engine/redaction/redact.ts";
import { validRecord, type DataRecord } from "#domain/record.ts";
import { formsOf } from "../flow/canary-search.ts";
import { WRITERS } from "./writers.ts";

const AWKWARD = `pass "q" \\n <b>&amp;' é€ %41+/=? word`;
const SECRETS = [
  AWKWARD,
  "correct-horse-battery",
  "corr&ct-h<rse=b+ttery/st/ple",
  "My pass!word 'n' \\slashes",
  "пароль-für-alle",
  "C:\\new\\table%20&lt;",
  "123456",
];

test("a secret is found in every form in which software writes it down, also two over another", async () => {
  for (const secret of SECRETS) {
    const redactor = makeRedactor([secret]);
    for (const [inner, write] of Object.entries(WRITERS)) {
      for (const [outer, over] of Object.entries({ plain: (text: string) => text, ...WRITERS })) {
        const written = over(write(secret));
        const place = `${JSON.stringify(secret)} as ${inner} in ${outer}: ${written}`;
        const clean = redactor.text(`before ${written} after`);
        assert.match(clean, /^before .{0,4}\[REDACTED\].{0,16} after$/s, place);
        assert.equal(await redactor.body(`before ${written} after`), clean, place);
        const parsed = JSON.parse(redactor.json({ a: [`x ${written}`] })) as {
          readonly a: readonly string[];
        };
        assert.match(parsed.a[0] ?? "", /^x .{0,4}\[REDACTED\].{0,16}$/s, place);
      }
    }
  }
});

test("a piece of base64 that was cut out of a longer one is found as well", () => {
  for (const secret of SECRETS) {
    const redactor = makeRedactor([secret]);
    for (const [form, bytes] of formsOf(secret))
      assert.match(
        redactor.text(`a ${bytes.toString("utf8")} z`),
        /^a \[REDACTED\].{0,1} z$/s,
        `${secret}, ${form}`,
      );
  }
});

test("an escape that begins at a secret's end is not taken for the text behind it", () => {
  for (const end of ["\\", "%", "%4", "&", "&am", "&#3"]) {
    const redactor = makeRedactor([`open-sesame${end}`]);
    for (const [name, write] of Object.entries(WRITERS)) {
      const clean = redactor.text(`a ${write(`open-sesame${end}`)}4p;lt; z`);
      assert.match(clean, /^a \[REDACTED\].{0,24}4p;lt; z$/s, `${end} as ${name}`);
    }
  }
});

test("inside a longer encoded text only the secret is taken out", () => {
  const redactor = makeRedactor([AWKWARD]);
  for (const before of ["u", "us", "use", "user-name:"]) {
    const token = Buffer.from(`${before}${AWKWARD}, and more`).toString("base64");
    const clean = redactor.text(`Basic ${token} `);
    const [start = "", end = ""] = clean.split("[REDACTED]");
    assert.ok(
      `Basic ${token} `.startsWith(start) && start.length >= 6 + Math.floor((before.length * 4) / 3),
      clean,
    );
    assert.ok(`Basic ${token} `.endsWith(end) && end.length > 12, clean);
  }
  const url = redactor.text(`https://a.example/?a=1%202&token=${encodeURIComponent(AWKWARD)}&b=3%204`);
  assert.equal(url, "https://a.example/?a=1%202&token=[REDACTED]&b=3%204");
});

test("in Latin-1 and UTF-16 as well", async () => {
  const redactor = makeRedactor(["schlüssel-wort"]);
  for (const bytes of [
    Buffer.from("x schlüssel-wort y", "latin1"),
    Buffer.from("x schlüssel-wort y", "utf16le"),
    Buffer.from("x schlüssel-wort y", "utf16le").swap16(),
  ]) {
    const clean = await collect(redactor.stream(inChunks(bytes, 7)));
    assert.ok(clean.includes("[REDACTED]") && !clean.includes("ssel"), clean.toString("latin1"));
  }
  const powershell = Buffer.from("$p = 'schlüssel-wort'", "utf16le").toString("base64");
  assert.match(redactor.text(powershell), /\[REDACTED\]/);
});

test("in a file that comes in pieces, wherever it is cut", async () => {
  const redactor = makeRedactor([AWKWARD]);
  const filler = "lorem ipsum dolor ".repeat(20_000);
  const written = Buffer.from(`user:${AWKWARD}`).toString("base64");
  const file = Buffer.from(`${filler}${AWKWARD}${filler}${written}${filler}${encodeURIComponent(AWKWARD)}`);
  for (const size of [997, 65_536, 10_000_000]) {
    const clean = (await collect(redactor.stream(inChunks(file, size)))).toString();
    assert.equal(clean.split("[REDACTED]").length, 4, `${size}`);
    assert.ok(clean.startsWith(filler) && !clean.includes("pass%20"), `${size}`);
  }
});

test("a long body leaves others their turns, and how many secrets there are makes no difference", async () => {
  const words = Array.from(
    { length: 40_000 },
    (_each, index) => `{"id":${index},"name":"Customer \\"${index}\\""}`,
  );
  const body = `[${words.join(",")},"${"x".repeat(6_000_000)}"]`;
  const cpuMs = async (count: number): Promise<number> => {
    const redactor = makeRedactor(
      Array.from({ length: count }, (_each, index) => `cookie-${index}-of-the-session`),
    );
    const began = process.cpuUsage();
    let turns = 0;
    let isOver = false;
    const others = (async () => {
      for (; !isOver; turns++) await setImmediate();
    })();
    assert.equal(await redactor.body(body), body);
    isOver = true;
    await others;
    assert.ok(turns >= 8, `${turns} turns`);
    const used = process.cpuUsage(began);
    return (used.user + used.system) / 1_000;
  };
  await cpuMs(60);
  const few = await cpuMs(60);
  const many = await cpuMs(1_200);
  assert.ok(many < 4 * few + 100, `${few} ms of CPU time with 60 secrets, ${many} ms with 1,200`);
});

test("a text that is built to be slow is not slow", async () => {
  const secrets = Array.from({ length: 50 }, (_each, index) => `${"a".repeat(3_000)}${index}`);
  const redactor = makeRedactor(secrets);
  const began = process.cpuUsage();
  await redactor.body(`${"a".repeat(2_900)} `.repeat(700));
  const { user, system } = process.cpuUsage(began);
  assert.ok(user + system < 2_000_000, `${(user + system) / 1_000} ms of CPU time for 2 MB`);
});

test("a key that the document names stays; the same word elsewhere does not", async () => {
  const redactor = makeRedactor(["records", "customer"], new Set(["records"]));
  const body = `{"records": [{"customer": "the records of 1"}], "x": {"records":"records"}}`;
  const clean = `{"records": [{"[REDACTED]": "the [REDACTED] of 1"}], "x": {"records":"[REDACTED]"}}`;
  assert.equal(await redactor.body(body), clean);
  assert.deepEqual(JSON.parse(redactor.json(JSON.parse(body))), JSON.parse(clean));
  const [line] = (await redactor.lines([validRecord({ records: "records" })])).toString().split("\n");
  assert.deepEqual(JSON.parse(line ?? "").data, { records: "[REDACTED]" });
});

test("six digits that count only alone are not looked for in longer numbers", async () => {
  const redactor = makeRedactor([{ value: "482913", alone: true }]);
  assert.equal(
    await redactor.body(`{"code":482913,"id":14829135,"t":"code 482913."}`),
    `{"code":"[REDACTED]","id":14829135,"t":"code [REDACTED]."}`,
  );
});

test("a text that is cut stays JSON wherever the secret stands in it", async () => {
  const redactor = makeRedactor(["nathan-the-wise", "abcde\\", "0026fghijk"]);
  for (const value of [
    "CORP\nathan-the-wise",
    "CORP\\nathan-the-wise",
    'abcde\\"',
    "abcde\\",
    "a\u0026fghijk",
    "\\0026fghijk",
  ]) {
    for (const text of [
      JSON.stringify({ a: value, b: [value] }),
      `{"a":"${value.replaceAll('"', '\\"')}"}`,
    ]) {
      let isJson = true;
      try {
        JSON.parse(text);
      } catch {
        isJson = false;
      }
      if (isJson) assert.ok(JSON.parse(await redactor.body(text)), text);
    }
  }
});

async function collect(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function* inChunks(bytes: Buffer, size: number): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

test("a host name has no capitals: messages are cleaned all the same", () => {
  const redactor = makeRedactor(["HunterTwo"]);
  assert.equal(redactor.message("redirected to huntertwo.example"), "redirected to [REDACTED].example");
  assert.equal(redactor.text("a huntertwo among the data"), "a huntertwo among the data");
});

test("what is stored stays JSON and keeps its shape, whatever the secret is", async () => {
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
  const [line = "", rest] = (await redactor.lines([record])).toString("utf8").split("\n");
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
  assert.equal(await redactor.body(`{"pin": 123456, "x": [true]}`), `{"pin": "[REDACTED]", "x": [true]}`);
  assert.equal(await redactor.body(`pin=123456;`), "pin=[REDACTED];");
  const deep = `${"[".repeat(50_000)}"123456"${"]".repeat(50_000)}`;
  assert.ok(!(await redactor.body(deep)).includes("123456"), "too deep to be written again");
});

test("what holds no secret is left as it is, to the byte", async () => {
  const redactor = makeRedactor([AWKWARD, "123456", "short"]);
  const records = [validRecord({ a: 1.5, b: "short 12345", c: { "\u2028": "é" } })];
  assert.equal((await redactor.lines(records)).toString("utf8"), `${JSON.stringify(records[0])}\n`);
  assert.equal(await redactor.body(`{ "a":  1.50 }`), `{ "a":  1.50 }`);
  assert.equal(redactor.changes, 0);
  // docs/decisions/0014: values under six characters can't be matched.
  assert.equal(makeRedactor(["short", ""]).text("short"), "short");
});

test("the changes are counted, for the run's warning", async () => {
  const redactor = makeRedactor(["hunter-two"]);
  await redactor.lines([validRecord({ a: "hunter-two", b: "hunter-two hunter-two" })]);
  redactor.text("nothing");
  assert.equal(redactor.changes, 2);
});

test("what a run is given while it runs is looked for from then on", async () => {
  const redactor = makeRedactor([]);
  assert.equal(redactor.isIdle, true);
  redactor.add(["HunterTwo"]);
  assert.equal(redactor.isIdle, false);
  assert.equal(
    (await collect(redactor.stream(inChunks(Buffer.from("x HunterTwo y"), 3)))).toString(),
    "x [REDACTED] y",
  );
  assert.equal(redactor.text("HunterTwo"), "[REDACTED]");
});

test("of values that replace each other the newest are looked for, besides all that last", () => {
  const redactor = makeRedactor(["hunter-two"]);
  const rotated = (index: number): string => `session-cookie-number-${index}-end`;
  for (let index = 0; index < 1_000; index++) redactor.addPassing([rotated(index), rotated(index)]);
  for (const index of [999, 950, 901])
    assert.equal(redactor.text(`a ${rotated(index)}`), "a [REDACTED]", `${index}`);
  assert.equal(redactor.text(rotated(10)), rotated(10), "long gone");
  assert.equal(redactor.text("hunter-two"), "[REDACTED]");
  assert.equal(redactor.message("HUNTER-TWO"), "[REDACTED]");
});

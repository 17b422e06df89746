// What operators are shown of an answer: nothing that the redactor knows, and of a login nothing that could be a secret besides.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { OutboundResponse } from "#domain/http-exchange.ts";
import type { AnswerOf } from "#engine/redaction/hide-tokens.ts";
import { makeRedactor } from "#engine/redaction/redact.ts";
import { showAnswer } from "#engine/redaction/show-answer.ts";

const SECRET = "canary-öpass+4711=?";

const answer = (
  body: string | Buffer,
  type = "text/html",
  more: Partial<OutboundResponse> = {},
): OutboundResponse => {
  const bytes = Buffer.from(body);
  return {
    status: 200,
    url: "https://portal.example/home?ticket=abc&page=2",
    isRedirected: true,
    headers: new Map([["content-type", type]]),
    body: bytes,
    kept: null,
    text: () => bytes.toString("utf8"),
    ...more,
  };
};
const show = async (response: OutboundResponse, of: AnswerOf = "login", secrets = [SECRET]) =>
  await showAnswer(response, makeRedactor(secrets), of);

test("a page is shown as people read it: no markup, no hidden value, no script, entities decoded", async () => {
  const page = `<!doctype html><html><head><title>
    Log in &#8211; Acme</title><style>p { color: red }</style></head><!-- build 7 --><body onload="a('<p>')">
    <input type="hidden" name=t value="a>hidden"><SCRIPT>var token = "s";</script>
    <p>Wrong&nbsp;user &amp;<br>pass<b>word</b>, 3 &lt; 4</p><p>Try again</p></body>`;
  assert.deepEqual(await show(answer(page)), {
    status: 200,
    address: "https://portal.example/home?ticket=…&page=…",
    leads_to: null,
    content_type: "text/html",
    title: "Log in – Acme",
    begins: "Wrong user & password, 3 < 4 Try again",
  });
  // What is cut off, or means harm, is shown as far as it can be read.
  for (const open of ["<a x=", "<!--", "<script>", "&", "<", "<title", "</"])
    assert.ok((await show(answer(open.repeat(20_000)))).begins.length <= 501, open);
});

test("a known secret is not shown, in whatever form it stands, nor half of it where the text is cut", async () => {
  for (const form of [
    SECRET,
    encodeURIComponent(SECRET),
    JSON.stringify(SECRET).slice(1, -1),
    "canary-&ouml;pass&#43;4711=?",
    "canary-&#246;pass+4711&#x3d;?",
    Buffer.from(SECRET).toString("base64"),
  ])
    for (let before = 470; before <= 505; before += 5) {
      const shown = JSON.stringify(await show(answer(`${"a ".repeat(before / 2)}${form} end`)));
      assert.doesNotMatch(shown, /canary|4711|Y2FuYXJ5/, `${form} at ${before}`);
    }
});

test("a secret with white space is found before a page's white space is made one", async () => {
  const secret = "canary  4711   pass";
  const { begins } = await show(answer(`<html><body><p>Hello ${secret}!</p></body></html>`), "node", [
    secret,
  ]);
  assert.equal(begins, "Hello [REDACTED]!");
});

test("of a login nothing is shown that may be a token, though nobody knows it; of a node what its name says", async () => {
  const tokens = {
    access_token: "short",
    data: { id: "9f8a7b6c5d4e3f2a1b0c", jwt: 7, mail: "ana@example.com" },
    message: "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln is not valid",
  };
  const json = (of: AnswerOf) => show(answer(JSON.stringify(tokens), "application/json"), of);
  assert.equal(
    (await json("login")).begins,
    '{"access_token":…,"data":{"id":"…","jwt":…,"mail":"ana@example.com"},"message":"… is not valid"}',
  );
  assert.equal(
    (await json("node")).begins,
    '{"access_token":…,"data":{"id":"9f8a7b6c5d4e3f2a1b0c","jwt":…,"mail":"ana@example.com"},"message":"… is not valid"}',
  );
  const redirect = answer("", "text/plain", {
    status: 302,
    headers: new Map([["location", "/app/9f8a7b6c5d4e3f2a1b0c;jsessionid=x?sid=1"]]),
  });
  assert.equal((await show(redirect)).leads_to, "https://portal.example/app/…?sid=…");
});

test("what is no text is not shown, and of a long text its beginning", async () => {
  assert.equal((await show(answer(Buffer.from([0x25, 0x50, 0, 1]), "application/pdf"))).begins, "");
  const { begins } = await show(answer("é".repeat(90_000), "text/plain"));
  assert.equal(begins, `${"é".repeat(500)}…`);
  const kept = {
    sizeBytes: 9,
    open: async function* () {
      yield Buffer.from("from a ");
      yield Buffer.from("file");
    },
  };
  assert.equal((await show(answer("", "text/plain", { kept }))).begins, "from a file");
});

import assert from "node:assert/strict";
import { openCaller } from "../caller.ts";
import { inTier, tier } from "../tiers.ts";
import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { ECHO_INPUTS, openMisused, type Misused } from "./misuse-setup.ts";
import { assertEnvelope, exchange, type RawAnswer } from "./raw-socket.ts";

let misused: Misused;
before(async () => {
  misused = await openMisused();
});
after(async () => await misused[Symbol.asyncDispose]());

const STRINGS = JSON.parse(
  readFileSync(new URL("./naughty-strings.json", import.meta.url), "utf8"),
) as string[];

const ENDPOINTS = [
  "POST /api/v1/credential-sessions",
  "GET /api/v1/credential-sessions/ID",
  "DELETE /api/v1/credentials/ID",
  "POST /api/v1/blueprints/echo/trigger",
  "GET /api/v1/blueprint-runs/ID/status",
  "GET /api/v1/blueprint-runs/ID/results?deliveryMethod=direct",
];
const IDS = [
  "sess_0123456789abcdefghijklmn",
  "cred_x",
  "run_0123456789abcdefghijklmn",
  "00000000-0000-7000-8000-000000000000",
  "%00",
  "%ZZ",
  "%2F",
  "__proto__",
  "é",
  " ",
  "a?b=c",
  "a#b",
  "*",
];
const BODIES = [
  "",
  "{",
  "[]",
  "null",
  "1",
  '"a"',
  "{}{}",
  '{"strategy_id":1}',
  '{"strategy_id":"\\ud800"}',
  '{"strategy_id":null}',
  '{"name":{}}',
  '{"return_url":"http://"}',
  '{"credential_id":{"a":1}}',
  '{"credential_id":"cred_x"}',
  '{"run_name":"\\u0000"}',
  '{"__proto__":{"strategy_id":"strat_misuse"}}',
  "[".repeat(200),
  "\ufeff{}",
  "\u0000",
  "\u00ff\u00fe",
  "--b\r\n\r\n--b--\r\n",
  '--b\r\nContent-Disposition: form-data; name="run_name"; filename="a"\r\n\r\nx\r\n--b--\r\n',
];
const HEADERS = [
  "Idempotency-Key: ",
  `Idempotency-Key: ${"k".repeat(256)}`,
  "Idempotency-Key: a\r\nIdempotency-Key: b",
  "Content-Type: text/plain",
  "Content-Type: application/json; charset=utf-16",
  "Content-Type: multipart/form-data",
  "Content-Type: multipart/form-data; boundary=b",
  "Content-Type: application/json",
  "Content-Encoding: gzip",
  "Transfer-Encoding: gzip",
  "Transfer-Encoding: chunked",
  "Content-Length: 5x",
  "Expect: 100-continue",
  "Expect: x",
  "Upgrade: h2c",
  "Host: second",
  "Authorization: Basic eDp5",
  "Authorization: Bearer a b",
  "X: \u0001",
  "Bad Header: 1",
  ": empty",
  "Accept: \u00ff",
  "Range: bytes=0-1",
  "Cookie: a=b",
  "Connection: close",
  "X-HTTP-Method-Override: DELETE",
  "Prefer: x",
];

const request = fc.record({
  endpoint: fc.constantFrom(...ENDPOINTS),
  method: fc.option(
    fc.constantFrom(
      "GET",
      "HEAD",
      "PUT",
      "PATCH",
      "OPTIONS",
      "TRACE",
      "POST",
      "DELETE",
      "BREW",
      "get",
      "CONNECT",
      "",
    ),
    { freq: 4 },
  ),
  id: fc.oneof(
    fc.constantFrom(...IDS),
    fc.string({ maxLength: 40 }),
    fc
      .constantFrom(...STRINGS.filter((text) => text.length < 2_000 && text.isWellFormed()))
      .map(encodeURIComponent),
  ),
  pathAt: fc.option(fc.tuple(fc.nat(60), fc.string({ maxLength: 4 })), { freq: 4 }),
  version: fc.constantFrom(
    "HTTP/1.1",
    "HTTP/1.1",
    "HTTP/1.1",
    "HTTP/1.1",
    "HTTP/1.0",
    "HTTP/2.0",
    "HTTP",
    "",
  ),
  key: fc.constantFrom("good", "good", "good", "good", "bad", "none"),
  host: fc.constantFrom("Host: x\r\n", "Host: x\r\n", "Host: x\r\n", ""),
  headers: fc.array(
    fc.oneof(
      fc.constantFrom(...HEADERS),
      fc
        .tuple(fc.string({ maxLength: 12 }), fc.string({ maxLength: 12 }))
        .map(([name, value]) => `${name}: ${value}`),
    ),
    { maxLength: 3 },
  ),
  body: fc.oneof(fc.constantFrom(...BODIES), fc.json({ maxDepth: 3 }), fc.string({ maxLength: 60 })),
  lengthBy: fc.constantFrom(0, 0, 0, 0, 0, -1),
});

type Spec = typeof request extends fc.Arbitrary<infer T> ? T : never;

async function send(spec: Spec): Promise<void> {
  const [method = "", path = ""] = spec.endpoint.split(" ");
  let target = path.replace("ID", spec.id);
  if (spec.pathAt !== null)
    target = target.slice(0, spec.pathAt[0]) + spec.pathAt[1] + target.slice(spec.pathAt[0]);
  const sent = spec.method ?? method;
  const authorization =
    spec.key === "none" ? "" : `Authorization: Bearer ${spec.key === "good" ? misused.key : "lk_bad"}\r\n`;
  const body = Buffer.from(spec.body, "utf8");
  const isChunked = spec.headers.some((header) => header.startsWith("Transfer-Encoding"));
  const length = isChunked ? "" : `Content-Length: ${Math.max(0, body.length + spec.lengthBy)}\r\n`;
  const lines = `${sent} ${target} ${spec.version}\r\n${spec.host}${authorization}${spec.headers.map((header) => `${header}\r\n`).join("")}${length}Connection: close\r\n\r\n`;
  const bytes = Buffer.concat([
    Buffer.from(lines, "utf8"),
    body,
    Buffer.from(isChunked ? "\r\n0\r\n\r\n" : "\r\n\r\n"),
  ]);
  const { answers } = await exchange(misused.service.url, bytes, { timeoutMs: 30_000, methods: [sent] });
  const answer = answers[0];
  assert.ok(answer, `no answer to ${JSON.stringify(bytes.toString("latin1").replace(misused.key, "<key>"))}`);
  assert.ok(
    answer.status < 500,
    `${answer.status} to ${JSON.stringify(lines.replace(misused.key, "<key>"))}`,
  );
  if (answer.status >= 400 && sent !== "HEAD") assertEnvelope(answer);
}

const REQUESTS = tier === "fast" ? 200 : 1_000;

for (const seed of [20261121, randomInt(2 ** 31)]) {
  test(`${REQUESTS.toLocaleString("en")} malformed requests: each is answered in the envelope, none with a 5xx (seed ${seed})`, async () => {
    console.log(`  seed ${seed}`);
    const specs = fc.sample(request, { seed, numRuns: REQUESTS });
    for (let at = 0; at < specs.length; at += 20) await Promise.all(specs.slice(at, at + 20).map(send));
    assert.equal(misused.service.child.exitCode, null, "the service lives");
  });
}

/** Exactly what was sent, or 422. */
function assertTaken(
  answer: { readonly status: number; readonly text: string },
  good: number,
  mayRefuse: boolean,
  place: string,
): boolean {
  if (answer.status === good) return true;
  assert.equal(answer.status, 422, `${place}: ${answer.text.slice(0, 200)}`);
  assert.ok(mayRefuse, `${place} was refused: ${answer.text.slice(0, 200)}`);
  return false;
}

const inBatches = async (
  texts: readonly string[],
  size: number,
  work: (text: string) => Promise<void>,
): Promise<void> => {
  for (let at = 0; at < texts.length; at += size) await Promise.all(texts.slice(at, at + size).map(work));
};

test("Naughty strings are distinct, and at least 485", () => {
  assert.ok(STRINGS.length >= 485);
  assert.equal(new Set(STRINGS).size, STRINGS.length);
});

test("Every naughty string as an INPUT comes back exactly, by JSON and by multipart; a lone surrogate is 422", async () => {
  const good = STRINGS.filter((text) => text.isWellFormed());
  for (const text of STRINGS) {
    if (text.isWellFormed()) continue;
    assert.equal((await misused.caller.post("/blueprints/echo/trigger", { text_0: text })).status, 422);
  }
  for (let at = 0; at < good.length; at += ECHO_INPUTS) {
    const part = good.slice(at, at + ECHO_INPUTS);
    const names = part.map((text, index) => [`text_${index}`, text] as const);
    const boundary = "naughty-boundary-0123456789";
    const form = `${names.map(([name, text]) => `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`).join("")}--${boundary}--\r\n`;
    for (const [body, headers] of [
      [Object.fromEntries(names), undefined],
      [form, { "content-type": `multipart/form-data; boundary=${boundary}` }],
    ] as const) {
      const {
        status,
        body: run,
        text,
      } = await misused.caller.post("/blueprints/echo/trigger", body, headers);
      assert.equal(status, 202, text);
      const ended = await misused.caller.waitForRun(run.id);
      assert.equal(ended.body.status, "completed");
      const results = await misused.caller.get(`/blueprint-runs/${run.id}/results?deliveryMethod=direct`);
      const { data } = results.body.results.echo.records[0];
      for (const [name, sent] of names) assert.equal(data[name], sent, JSON.stringify(sent.slice(0, 60)));
    }
  }
});

test("Every naughty string in every other field is taken as it is or 422, in a path 404, never 5xx", async () => {
  // Without a worker: the hundreds of runs that are triggered here are nobody's concern.
  await misused.service.end();
  const service = await misused.installation.serveProcess({}, ["api"]);
  const { key } = misused;
  const caller = openCaller(service.url, key);
  await inBatches(
    inTier(STRINGS, (_, index) => index % 8 === 0),
    8,
    async (text) => {
      const shown = JSON.stringify(text.slice(0, 60));
      const isName = text.isWellFormed() && !text.includes("\0") && Array.from(text).length <= 255;
      const strategy = await caller.post("/credential-sessions", { strategy_id: text });
      assert.equal(strategy.status, text === "strat_misuse" ? 201 : 422, `strategy_id ${shown}`);
      assert.equal(
        (await caller.post("/credential-sessions", { strategy_id: "strat_misuse", return_url: text })).status,
        422,
        `return_url ${shown}`,
      );
      const inQuery = `http://localhost:3000/?q=${text}`;
      const session = await caller.post("/credential-sessions", {
        strategy_id: "strat_misuse",
        return_url: inQuery,
      });
      if (assertTaken(session, 201, true, `return_url query ${shown}`))
        assert.equal(session.body.return_url, inQuery);
      assertTaken(
        await caller.post("/credential-sessions", { strategy_id: "strat_misuse", name: text }),
        201,
        !isName,
        `name ${shown}`,
      );
      const credential = await caller.post("/blueprints/echo/trigger", { credential_id: text });
      // Commas and white space alone name no credential.
      assert.equal(credential.status, /^[\s,]*$/.test(text) ? 202 : 422, `credential_id ${shown}`);
      const isKey = !/^credential_ids?$/.test(text);
      if (isName && isKey) {
        const run = await caller.post("/blueprints/echo/trigger", {
          run_name: text,
          note: text,
          [`${text} `]: 1,
        });
        assert.equal(run.status, 202, `run_name, metadata and a key ${shown}`);
        const [row] = await misused.installation.database.db.query<{ name: string; note: string }>(
          "select convert_from(name, 'UTF8') as name, convert_from(metadata, 'UTF8')::json->>'note' as note from run where id = $1",
          [run.body.id],
        );
        assert.deepEqual(row, { name: text, note: text });
      } else if (isKey) {
        assert.equal(
          (await caller.post("/blueprints/echo/trigger", { run_name: text })).status,
          422,
          `run_name ${shown}`,
        );
        const isText = text.isWellFormed() && !text.includes("\0");
        assertTaken(
          await caller.post("/blueprints/echo/trigger", { note: text }),
          202,
          !isText,
          `metadata ${shown}`,
        );
        assertTaken(
          await caller.post("/blueprints/echo/trigger", { [text]: 1 }),
          202,
          !text.isWellFormed(),
          `a key ${shown}`,
        );
      }
      if (text.isWellFormed() && text.length < 4_000) {
        const encoded = encodeURIComponent(text).replace(/^\.{1,2}$/, "%2e");
        for (const path of [
          `/credential-sessions/${encoded}`,
          `/blueprint-runs/${encoded}/status`,
          `/blueprint-runs/${encoded}/results`,
        ]) {
          assert.equal((await caller.get(path)).status, 404, `${path.slice(0, 60)}`);
        }
        const method = await caller.get(
          `/blueprint-runs/run_0123456789abcdefghijklmn/results?deliveryMethod=${encoded}`,
        );
        assert.ok([404, 422].includes(method.status));
      }
      // Header values are bytes: raw sockets send what fetch would not.
      const lines = `POST /api/v1/credential-sessions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: 30\r\nConnection: close\r\n`;
      const { answers } = await exchange(
        service.url,
        Buffer.from(`${lines}Idempotency-Key: ${text}\r\n\r\n{"strategy_id":"strat_misuse"}`, "utf8"),
      );
      const answer: RawAnswer | undefined = answers[0];
      assert.ok(answer && answer.status < 500, `Idempotency-Key ${shown}`);
      if (answer.status >= 400) assertEnvelope(answer);
    },
  );
});

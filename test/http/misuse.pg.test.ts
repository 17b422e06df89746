import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { cpuSecondsOf } from "../../bench/cpu.ts";
import { openMisused, type Misused } from "./misuse-setup.ts";
import { assertEnvelope, exchange, openConnection, parseAnswers, waitFor } from "./raw-socket.ts";

let misused: Misused;
let url: string;
/** Header lines of a request, without and with the key. */
const HOST = "Host: latchkey.test\r\n";
let authorized: string;

before(async () => {
  misused = await openMisused();
  url = misused.service.url;
  authorized = `${HOST}Authorization: Bearer ${misused.key}\r\n`;
});
after(async () => await misused[Symbol.asyncDispose]());

/** What comes soon comes later on a busy machine. */
const PATIENCE_MS = 60_000;
const SESSIONS = "/api/v1/credential-sessions";
const TRIGGER = "/api/v1/blueprints/echo/trigger";
const WRONG_KEY = `${HOST}Authorization: Bearer lk_wrong\r\n`;

/** One request, one answer. */
async function ask(head: string, body = "", methods: readonly string[] = []) {
  const { answers, ...rest } = await exchange(url, `${head}\r\n${body}`, { methods });
  return { answer: answers[0], ...rest };
}

test("Authentication is decided from the headers: of a 50 MB body with a bad key under 64 KiB are read, and the connection ends", async () => {
  const total = 50_000_000;
  // What the service loads at its first refusal is read before.
  await exchange(url, `POST ${SESSIONS} HTTP/1.1\r\n${WRONG_KEY}Content-Length: 0\r\n\r\n`, { count: 1 });
  const io = `/proc/${misused.service.child.pid}/io`;
  const readBytes = (): number => Number(/^rchar: (\d+)/m.exec(readFileSync(io, "utf8"))?.[1]);
  for (const framing of [`Content-Length: ${total}\r\n`, "Transfer-Encoding: chunked\r\n"]) {
    const connection = await openConnection(url);
    const before = process.platform === "linux" ? readBytes() : 0;
    connection.socket.write(
      `POST ${SESSIONS} HTTP/1.1\r\n${WRONG_KEY}Content-Type: application/json\r\n${framing}\r\n`,
    );
    const block = Buffer.alloc(16_384, "a");
    const chunk = framing.startsWith("T")
      ? Buffer.concat([Buffer.from("4000\r\n"), block, Buffer.from("\r\n")])
      : block;
    for (let sent = 0; sent < total && !connection.isClosed(); sent += block.length) {
      if (!connection.socket.write(chunk))
        await Promise.race([new Promise((resolve) => connection.socket.once("drain", resolve)), sleep(20)]);
    }
    assert.ok(await waitFor(connection.isClosed, PATIENCE_MS), "the service ends the connection");
    const [answer] = parseAnswers(connection.received()).answers;
    assertEnvelope(answer, 401);
    assert.equal(answer?.headers["connection"], "close");
    assert.equal(answer?.headers["www-authenticate"], "Bearer");
    if (process.platform === "linux") {
      const read = readBytes() - before;
      console.log(`  read of 50 MB: ${read} bytes`);
      // What the process reads of its database meanwhile counts too.
      assert.ok(read < 65_536 + 32_768, `${read} bytes were read`);
    }
    connection.socket.destroy();
  }
});

test("A small refused body does not cost the connection", async () => {
  const one = `POST ${SESSIONS} HTTP/1.1\r\n${WRONG_KEY}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`;
  const { answers, closed } = await exchange(url, one + one, { count: 2 });
  assert.deepEqual(
    answers.map(({ status }) => status),
    [401, 401],
  );
  assert.equal(closed, false);
});

test("Expect: 100-continue is answered 100 only after authentication and routing", async () => {
  const expecting = "Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 2\r\n";
  for (const [head, status] of [
    [`POST ${SESSIONS} HTTP/1.1\r\n${HOST}`, 401],
    [`POST ${SESSIONS} HTTP/1.1\r\n${WRONG_KEY}`, 401],
    [`POST ${TRIGGER.replace("echo", "none")} HTTP/1.1\r\n${authorized}`, 404],
    [`POST ${SESSIONS} HTTP/1.1\r\n${authorized}Idempotency-Key: \r\n`, 422],
  ] as const) {
    const { answer, interim, closed } = await ask(head + expecting);
    assertEnvelope(answer, status);
    assert.deepEqual(interim, []);
    // The client may send its body or not: nobody could tell it from the next request.
    assert.ok(closed);
  }
  const connection = await openConnection(url);
  connection.socket.write(`POST ${SESSIONS} HTTP/1.1\r\n${authorized}${expecting}\r\n`);
  assert.ok(
    await waitFor(() => parseAnswers(connection.received()).interim.length > 0, PATIENCE_MS),
    "100 once the body is wanted",
  );
  connection.socket.write("{}");
  assert.ok(await waitFor(() => parseAnswers(connection.received()).answers.length > 0, PATIENCE_MS));
  const read = parseAnswers(connection.received());
  assert.deepEqual(read.interim, [100]);
  assertEnvelope(read.answers[0], 422);
  connection.socket.destroy();
});

test("A Content-Type that is none of ours is 401 first, 404 next, 415 then", async () => {
  const types = [
    "application/json, text/plain",
    "json",
    "application/",
    "/json",
    "application/json; charset=utf-16",
    "text/plain",
    "application/jsonx",
    "application/json;charset=latin1",
    "application\t/json",
    "application/json\t, x",
    "*/*",
    "multipart/mixed; boundary=a",
    "multipart/form-datax; boundary=a",
    "\u00e9",
  ];
  const send = async (path: string, headers: string, type: string) =>
    (await ask(`POST ${path} HTTP/1.1\r\n${headers}Content-Type: ${type}\r\nContent-Length: 2\r\n`, "{}"))
      .answer;
  for (const type of types) {
    assertEnvelope(await send(SESSIONS, HOST, type), 401);
    assertEnvelope(await send(SESSIONS, authorized, type), 415);
    assertEnvelope(await send(TRIGGER, authorized, type), 415);
    assertEnvelope(await send(TRIGGER.replace("echo", "none"), authorized, type), 404);
    assertEnvelope(await send("/api/v1/nothing", authorized, type), 404);
  }
  for (const type of [
    "APPLICATION/JSON",
    "application/json\t; charset=UTF-8",
    'application/json;charset="utf-8"',
  ]) {
    assert.equal((await send(TRIGGER, authorized, type))?.status, 202, type);
  }
});

test("What is no request is answered with the envelope, and the connection ends", async () => {
  const post = `POST ${SESSIONS} HTTP/1.1\r\n${authorized}Content-Type: application/json\r\n`;
  const get = `GET ${SESSIONS}/x HTTP/1.1\r\n`;
  const cases: readonly [string, string | Uint8Array, number][] = [
    ["no request line", "hello\r\n\r\n", 400],
    ["a version that does not exist", `GET / HTTP/9.9\r\n${HOST}\r\n`, 400],
    ["an unknown method", `BREW /api/v1/x HTTP/1.1\r\n${HOST}\r\n`, 400],
    ["TLS on the plain port", Buffer.from([0x16, 3, 1, 0, 0xa5, 1, 0, 0]), 400],
    ["HTTP/2 with prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400],
    ["raw UTF-8 in the path", `GET ${SESSIONS}/\u00e9 HTTP/1.1\r\n${authorized}\r\n`, 400],
    ["a space before the colon", `${get}${authorized}X : 1\r\n\r\n`, 400],
    ["a folded header", `${get}${authorized}X: 1\r\n 2\r\nY\r\n\r\n`, 400],
    ["a NUL in a header", `${get}${authorized}X: \0\r\n\r\n`, 400],
    ["two Host headers", `${get}${HOST}${authorized}\r\n`, 400],
    ["no Host header", `${get}Authorization: Bearer ${"x"}\r\n\r\n`, 400],
    ["the absolute form", `GET http://latchkey.test${SESSIONS}/x HTTP/1.1\r\n${authorized}\r\n`, 400],
    ["Upgrade: websocket", `${get}${authorized}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`, 400],
    ["CONNECT", `CONNECT latchkey.test:443 HTTP/1.1\r\n${authorized}\r\n`, 400],
    ["headers over the limit", `${get}${authorized}X: ${"a".repeat(20_000)}\r\n\r\n`, 431],
    ["a path over the limit", `GET ${SESSIONS}/${"a".repeat(20_000)} HTTP/1.1\r\n${authorized}\r\n`, 431],
    ["too many headers", `${get}${authorized}${"X: 1\r\n".repeat(5_000)}\r\n`, 431],
    ["a chunk size that is none", `${post}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`, 400],
    ["a broken chunk after a good one", `${post}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n`, 400],
    ["a negative length", `${post}Content-Length: -1\r\n\r\n`, 400],
    ["a length that is no number", `${post}Content-Length: 1e3\r\n\r\n`, 400],
    ["two lengths", `${post}Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}`, 400],
    ["a length and chunks", `${post}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
    ["chunked twice", `${post}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`, 400],
  ];
  for (const [name, bytes, status] of cases) {
    const { answers, closed } = await exchange(url, bytes);
    assert.equal(answers.length, 1, name);
    assert.equal(answers[0]?.status, status, name);
    assertEnvelope(answers[0]);
    assert.equal(answers[0]?.headers["cache-control"], "no-store", name);
    assert.ok(closed, `${name}: the connection ends`);
  }
});

test("An odd path is 401 without the key and 404 with it, never more", async () => {
  const odd = [
    "%ZZ",
    "%00",
    "%2F",
    "%",
    "%C3%28",
    "%ED%A0%80",
    "x".repeat(501),
    "x".repeat(8_000),
    "..",
    "%2e%2e%2f",
    "a;b",
    "a%3Fb",
    "%F0%9F%92%A9",
    "__proto__",
    "constructor",
  ];
  for (const text of odd) {
    for (const [method, path] of [
      ["GET", `${SESSIONS}/${text}`],
      ["DELETE", `/api/v1/credentials/${text}`],
      ["POST", `/api/v1/blueprints/${text}/trigger`],
      ["GET", `/api/v1/blueprint-runs/${text}/status`],
      ["GET", `/api/v1/blueprint-runs/${text}/results?deliveryMethod=direct`],
    ] as const) {
      for (const [headers, status] of [
        [HOST, 401],
        [authorized, 404],
      ] as const) {
        const { answer } = await ask(`${method} ${path} HTTP/1.1\r\n${headers}`);
        assert.equal(answer?.status, status, `${method} ${path.slice(0, 80)}`);
        assertEnvelope(answer);
        assert.equal(answer?.headers["cache-control"], "no-store");
      }
    }
  }
});

test("An unknown path or method under /api/v1 is 401 without the key and 404 with it; HEAD has no body; all are no-store", async () => {
  for (const path of [
    "/api/v1",
    "/api/v1/",
    "/api/v1/nothing",
    "/api/v1?x=1",
    SESSIONS,
    `${TRIGGER}/more`,
    "/api/v1//credential-sessions",
  ]) {
    for (const method of [
      "GET",
      "HEAD",
      "OPTIONS",
      "PUT",
      "PATCH",
      "TRACE",
      "QUERY",
      "PROPFIND",
      "M-SEARCH",
    ]) {
      for (const [headers, status] of [
        [HOST, 401],
        [authorized, 404],
      ] as const) {
        const { answer } = await ask(`${method} ${path} HTTP/1.1\r\n${headers}`, "", [method]);
        assert.equal(answer?.status, status, `${method} ${path}`);
        assert.equal(answer?.headers["cache-control"], "no-store");
        if (method === "HEAD") {
          assert.equal(answer?.text, "");
          assert.match(answer?.headers["x-request-id"] ?? "", /^req_/);
        } else assertEnvelope(answer);
      }
    }
  }
});

test("Pipelined requests are answered in order, the malformed last one too", async () => {
  const slow =
    `POST ${SESSIONS} HTTP/1.1\r\n${authorized}Content-Type: application/json\r\nContent-Length: 29\r\n\r\n{"strategy_id":"strat_misuse"}`.replace(
      "29",
      "30",
    );
  const bytes =
    `${slow}GET ${SESSIONS}/a HTTP/1.1\r\n${HOST}\r\nHEAD ${SESSIONS}/a HTTP/1.1\r\n${authorized}\r\n` +
    `GET /healthz HTTP/1.1\r\n${HOST}\r\nno request\r\n\r\n`;
  const { answers, closed } = await exchange(url, bytes, { count: 5, methods: ["POST", "GET", "HEAD"] });
  assert.deepEqual(
    answers.map(({ status }) => status),
    [201, 401, 404, 200, 400],
  );
  assertEnvelope(answers[4]);
  assert.ok(closed);
});

test("A connection carries 1,000 requests and ends; none is answered without the envelope", async () => {
  const one = `GET ${SESSIONS}/a HTTP/1.1\r\n${authorized}\r\n`;
  const { answers, closed } = await exchange(url, one.repeat(1_010), {
    count: 1_010,
    timeoutMs: PATIENCE_MS,
  });
  assert.ok(answers.length >= 1_000);
  assert.ok(closed);
  assert.equal(answers[998]?.headers["connection"], "keep-alive");
  assert.equal(answers[999]?.headers["connection"], "close");
  for (const [index, answer] of answers.entries()) assertEnvelope(answer, index < 1_000 ? 404 : 503);
});

test("A JSON body over the limit is 413 in both framings, answered before it is read whole; 5 MiB for a trigger", async () => {
  const head = (path: string): string =>
    `POST ${path} HTTP/1.1\r\n${authorized}Content-Type: application/json\r\n`;
  for (const [path, limit] of [
    [SESSIONS, 1_048_576],
    [TRIGGER, 5 * 1_048_576],
  ] as const) {
    const declared = await exchange(url, `${head(path)}Content-Length: ${limit + 1}\r\n\r\n`);
    assertEnvelope(declared.answers[0], 413);
    assert.ok(declared.closed);
    const chunk = `10000\r\n${"a".repeat(65_536)}\r\n`;
    const chunked = await exchange(
      url,
      `${head(path)}Transfer-Encoding: chunked\r\n\r\n${chunk.repeat(limit / 65_536)}1\r\na\r\n`,
    );
    assertEnvelope(chunked.answers[0], 413);
    assert.ok(chunked.closed);
    const text = JSON.stringify({ ignored: "a".repeat(limit - 14) });
    assert.equal(text.length, limit);
    const full = await exchange(url, `${head(path)}Content-Length: ${limit}\r\n\r\n${text}`);
    assert.equal(
      full.answers[0]?.status,
      path === TRIGGER ? 202 : 422,
      "a body of exactly the limit is read",
    );
  }
});

test("JSON bombs are refused fast: depth 422, values 413; depth 64 is accepted", async () => {
  const nested = (depth: number): string => `{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;
  const pid = misused.service.child.pid ?? 0;
  const post = async (text: string): Promise<[status: number | undefined, cpuSeconds: number]> => {
    const before = cpuSecondsOf([pid]);
    const head = `POST ${TRIGGER} HTTP/1.1\r\n${authorized}Content-Type: application/json\r\nContent-Length: ${text.length}\r\n`;
    const { answer } = await ask(head, text);
    if (answer?.status !== 202) assertEnvelope(answer);
    return [answer?.status, cpuSecondsOf([pid]) - before];
  };
  assert.equal((await post(nested(64)))[0], 202);
  assert.equal((await post(nested(65)))[0], 422);
  const bombs: readonly [string, number][] = [
    ["[".repeat(5_000_000), 422],
    [`{"a":`.repeat(1_000_000), 422],
    [`{"a":[${"0,".repeat(2_000_000)}0]}`, 413],
    [`{${`"a":0,`.repeat(500_000)}"a":0}`, 413],
  ];
  for (const [text, expected] of bombs) {
    const [status, seconds] = await post(text);
    assert.equal(status, expected);
    // NaN where no /proc says it.
    assert.ok(!(seconds > 1.5), `${text.slice(0, 10)}… took ${seconds} s of CPU time`);
  }
});

test("The error's message never holds what the caller sent", async () => {
  const secret = "hunter2hunter2";
  for (const text of [`{"password":"${secret}"`, `{"a":${secret}}`, `["${secret}"]`, `"${secret}"`]) {
    for (const path of [SESSIONS, TRIGGER]) {
      const { answer } = await ask(
        `POST ${path} HTTP/1.1\r\n${authorized}Content-Type: application/json\r\nContent-Length: ${text.length}\r\n`,
        text,
      );
      assertEnvelope(answer, 422);
      assert.doesNotMatch(answer?.text ?? "", new RegExp(secret));
    }
  }
});

test("A client that sends its headers a byte a second is cut at the header time-out, with the envelope", async () => {
  const connection = await openConnection(url);
  const start = performance.now();
  const head = `GET ${SESSIONS}/x HTTP/1.1\r\n${authorized}`;
  for (let at = 0; at < head.length && !connection.isClosed(); at++) {
    connection.socket.write(head[at] ?? "");
    await waitFor(connection.isClosed, 1_000);
  }
  const seconds = (performance.now() - start) / 1_000;
  // The headers would go on for two minutes.
  assert.ok(connection.isClosed(), "cut before they end");
  assert.ok(seconds > 9, `cut after ${seconds} s`);
  assertEnvelope(parseAnswers(connection.received()).answers[0], 408);
});

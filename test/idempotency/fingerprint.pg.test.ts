// docs/decisions/0010: rows 9 to 19, 27 and 29 of its table, through HTTP: which keys are keys, and what makes two
// requests the same request.
import assert from "node:assert/strict";
import { once } from "node:events";
import { globSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fingerprint, fingerprintOfBytes, hashIdempotencyKey } from "#domain/idempotency.ts";
import { type ApiAnswer, type Caller } from "../caller.ts";
import type { Installation, RunningService } from "../service.ts";
import { assertFresh, assertReplay, assertReuse, keyed, newKey, SESSION, TRIGGER } from "./exchange.ts";
import { serveIdle, plantCredentials, runsNamed } from "./fixture.ts";
import { multipart, type Part } from "./multipart.ts";

let installation: Installation & AsyncDisposable;
let service: RunningService;
let apiKey: string;
let caller: Caller;

before(async () => {
  ({ installation, service, apiKey, caller } = await serveIdle());
});
after(() => installation?.[Symbol.asyncDispose]());

const trigger = async (key: string, body: unknown = { a: "[]", run_name: key }): Promise<ApiAnswer> =>
  await caller.post(TRIGGER, body, keyed(key));

function assertKeyRefused(answer: ApiAnswer): void {
  assertFresh(answer, 422);
  assert.equal(answer.body.error.type, "validation_error");
  assert.equal(answer.body.error.details[0].code, "invalid_input_data");
  assert.equal(answer.body.error.details[0].field, "Idempotency-Key");
}

/** What fetch would not send: any header bytes, the same header twice. */
async function raw(path: string, headers: readonly string[], body = "{}"): Promise<ApiAnswer> {
  const url = new URL(`${service.url}/api/v1${path}`);
  const all = [
    "Host",
    url.host,
    "Authorization",
    `Bearer ${apiKey}`,
    "Content-Type",
    "application/json",
    ...headers,
  ];
  const request = httpRequest(url, {
    method: "POST",
    headers: [...all, "Content-Length", String(Buffer.byteLength(body))],
  });
  // As bytes: a text would be written together with the headers, and both as UTF-8.
  request.end(Buffer.from(body));
  const [response] = await once(request, "response");
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk;
  return {
    status: response.statusCode,
    headers: new Headers(response.headers),
    text,
    body: JSON.parse(text),
  };
}

test("row 9: 255 characters are accepted, counted as Unicode code points of the UTF-8 text; 256 are 422 and without effect", async () => {
  // fetch takes only latin1; raw bytes go as node sends them.
  const bytes = (text: string): string => Buffer.from(text, "utf8").toString("latin1");
  for (const letter of ["k", "é", "鍵", "🔑"]) {
    const body = JSON.stringify({ run_name: `row 9 ${letter}` });
    const fits = ["Idempotency-Key", bytes(letter.repeat(255))];
    const first = await raw(TRIGGER, fits, body);
    assertFresh(first, 202);
    assertReplay(await raw(TRIGGER, fits, body), first);
    assertKeyRefused(await raw(TRIGGER, ["Idempotency-Key", bytes(letter.repeat(256))], body));
    assert.equal(await runsNamed(installation, `row 9 ${letter}`), 1);
  }
});

test("rows 10 and 11: a key that is empty, blank or sent twice is 422 and without effect", async () => {
  const body = JSON.stringify({ run_name: "rows 10 and 11" });
  for (const headers of [
    ["Idempotency-Key", ""],
    ["Idempotency-Key", "   "],
    ["Idempotency-Key", "\t"],
    ["Idempotency-Key", "a", "Idempotency-Key", "b"],
    ["Idempotency-Key", "a", "idempotency-key", "a"],
  ]) {
    assertKeyRefused(await raw(TRIGGER, headers, body));
  }
  assert.equal(await runsNamed(installation, "rows 10 and 11"), 0);
});

test("row 12: the same key on another endpoint or another path id is 409 idempotency_key_reuse, and does nothing", async () => {
  const [one = "", two = ""] = await plantCredentials(installation, 2);
  const key = newKey();
  assertFresh(await caller.delete(`/credentials/${one}`, keyed(key)), 204);
  assertReuse(await caller.delete(`/credentials/${two}`, keyed(key)));
  assertReuse(await trigger(key, {}));
  assertReuse(await caller.post("/credential-sessions", SESSION, keyed(key)));
  assertFresh(await caller.delete(`/credentials/${two}`), 204);
  const triggered = newKey();
  const body = { order: "1" };
  await trigger(triggered, body);
  assertReuse(await caller.post("/blueprints/other/trigger", body, keyed(triggered)));
  // The decoded path counts, not how it was written.
  assertReplay(
    await caller.post("/blueprints/%70lain/trigger", body, keyed(triggered)),
    await trigger(triggered, body),
  );
});

test("rows 13 to 16: JSON bodies are compared as values, numbers by their digits, duplicate names by the last, ignored keys too", async () => {
  const cases: [string, string, boolean][] = [
    ['{"a":"é","b":{"x":1,"y":[true,null]}}', ' { "b" : {"y":[true ,null],"x":1}, "a":"\\u00e9" } ', true],
    ['{"__proto__":1,"b":2}', '{"b":2,"__proto__":1}', true],
    ['{"a":9007199254740993}', '{"a":9007199254740992}', false],
    ['{"a":1}', '{"a":1.0}', false],
    ['{"a":1e2}', '{"a":1E2}', false],
    ['{"a":1,"a":2}', '{"a":2}', true],
    ['{"a":1,"a":2}', '{"a":1}', false],
    ['{"a":[1,2]}', '{"a":[2,1]}', false],
    ['{"a":"1"}', '{"a":1}', false],
    ['{"ignored_key":"x"}', '{"ignored_key":"y"}', false],
    ['{"ignored_key":"x"}', "{}", false],
  ];
  for (const [one, other, same] of cases) {
    const key = newKey();
    const first = await trigger(key, one);
    assertFresh(first, 202);
    const again = await trigger(key, other);
    if (same) assertReplay(again, first);
    else assertReuse(again);
  }
});

test("the bytes of a body are compared first, so that a request that is repeated is not parsed; other bytes are compared as values", async () => {
  const { db } = installation.database;
  const key = newKey();
  const store = async (set: string, value: Buffer | null): Promise<void> =>
    void (await db.query(`update idempotency_key set ${set} = $2 where key_hash = $1`, [
      hashIdempotencyKey(key),
      value,
    ]));
  const path = ["blueprints", "plain", "trigger"];
  const first = await trigger(key, '{"a":"[]"}');
  assertFresh(first, 202);
  assertReplay(await trigger(key, '{"a":"[]"}'), first);
  assertReplay(await trigger(key, '{ "a": "[]" }'), first);
  // Nobody could parse it.
  const [row] = await db.query<{ fingerprint: Buffer }>(
    "select fingerprint from idempotency_key where key_hash = $1",
    [hashIdempotencyKey(key)],
  );
  assert.ok(row);
  await store("bytes_fingerprint", fingerprintOfBytes("POST", path, Buffer.from("no JSON"), row.fingerprint));
  assertReplay(await trigger(key, "no JSON"), first);
  assertReplay(await trigger(key, '{"a":"[]"}'), first);
  const typed = { ...keyed(key), "content-type": "text/plain" };
  assert.equal((await caller.post(TRIGGER, "no JSON", typed)).status, 415);
  // As a program stores it that knows nothing of the bytes: what they were says nothing about another request's answer.
  const other = fingerprint("POST", path, { kind: "json", canonical: '{"a":"other"}' });
  await store("fingerprint", other);
  assertFresh(await trigger(key, "no JSON"), 422);
  assertReuse(await trigger(key, '{"a":"[]"}'));
  assertReplay(await trigger(key, '{"a":"other"}'), first);
  await store("bytes_fingerprint", null);
  assertReplay(await trigger(key, '{"a":"other"}'), first);
});

const sendParts = async (
  key: string,
  form: { readonly body: string; readonly type: string },
): Promise<ApiAnswer> => await caller.post(TRIGGER, form.body, { ...keyed(key), "content-type": form.type });

const stagedFiles = (): readonly string[] =>
  globSync(join(installation.dataFolder, "objects", "inputs", "**"), { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name);

test("rows 17 and 29: multipart is compared by its parts: boundary, order and preamble don't count, name, content, file name and type do", async () => {
  const file: Part = { name: "a", content: '[{"x":1}]', filename: "a.json", type: "application/json" };
  const text: Part = { name: "b", content: "text" };
  const key = newKey();
  const first = await sendParts(key, multipart("one", [file, text]));
  assertFresh(first, 202);
  const before = stagedFiles();
  assert.equal(before.length, 1);
  assertReplay(await sendParts(key, multipart("a-very-different-boundary", [file, text])), first);
  assertReplay(await sendParts(key, multipart("two", [text, file], "to be ignored\r\n")), first);
  for (const other of [
    [{ ...file, content: '[{"x":2}]' }, text],
    [{ ...file, filename: "b.json" }, text],
    [{ ...file, type: "text/plain" }, text],
    [file, { ...text, content: "Text" }],
    [file, { ...text, name: "c" }],
    [file],
    [{ name: "a", content: file.content }, text],
  ]) {
    assertReuse(await sendParts(key, multipart("one", other)));
  }
  // Row 29: what was staged for a claim that was lost, or for a refused request, is nobody's and goes.
  assert.deepEqual(stagedFiles(), before);
  assertFresh(
    await sendParts(newKey(), multipart("one", [file, { name: "credential_id", content: "cred_absent" }])),
    422,
  );
  assert.deepEqual(stagedFiles(), before);
});

test("row 18: JSON and multipart with the same values are different bodies", async () => {
  const key = newKey();
  assertFresh(await trigger(key, { b: "text" }), 202);
  assertReuse(await sendParts(key, multipart("one", [{ name: "b", content: "text" }])));
});

test("row 19: a DELETE's body counts neither for the effect nor for the fingerprint; an empty JSON body is fine", async () => {
  const [credential = ""] = await plantCredentials(installation, 1);
  const key = newKey();
  const send = async (body?: string): Promise<number[]> => {
    const response = await fetch(`${service.url}/api/v1/credentials/${credential}`, {
      method: "DELETE",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json", ...keyed(key) },
      ...(body === undefined ? {} : { body }),
    });
    return [response.status, response.headers.has("idempotent-replay") ? 1 : 0];
  };
  assert.deepEqual(await send(), [204, 0]);
  assert.deepEqual(await send('{"any":"body"}'), [204, 1]);
  assert.deepEqual(await send("no JSON"), [204, 1]);
});

test("row 27: keys are opaque: quotes, case and inner spaces count", async () => {
  const keys = ["row27", '"row27"', "Row27", "row 27", "row  27", "row27,row27", "row27;a=1"];
  const ids = new Set<string>();
  for (const key of keys) {
    const answer = await trigger(key, {});
    assertFresh(answer, 202);
    ids.add(answer.body.id);
  }
  assert.equal(ids.size, keys.length);
});

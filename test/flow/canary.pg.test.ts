import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { brotliCompressSync } from "node:zlib";
import { Secret } from "otpauth";
import { connect, openCaller, submitHostedForm, type Caller } from "../caller.ts";
import { install } from "../service.ts";
import {
  dumpDatabase,
  formsOf,
  readFolder,
  recordAnswers,
  search,
  type Finding,
  type Surface,
} from "./canary-search.ts";
import { startTarget, type Target, type TargetAnswer, type TargetRequest } from "./target.ts";

/** Long and random, and nothing that any encoding changes: found also where what stands around it was mangled. */
const core = (): string =>
  randomBytes(24)
    .toString("hex")
    .replace(/\d/g, (digit) => "ghijklmnop"[Number(digit)] ?? digit);
const awkward = (name: string): string => `${name} "q" \\n <b>&amp;' é€ %41+/=? ${core()}`;
const base32 = (): string =>
  Array.from(randomBytes(32), (byte) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[byte % 32]).join("");

const canaries = {
  username: `user-${core()}`,
  password: awkward("password"),
  totp: base32(),
  bearerToken: `tok."\\<&'%+/=${core()}`,
  headerKey: `key "\\<&'%+/=? ${core()}`,
  basicUser: `basic-${core()}`,
  basicPassword: awkward("basic:"),
  stored: awkward("stored"),
  wrongPassword: awkward("wrong"),
  // What the targets give for a login is as good as the credential.
  cookie: `cookie-${core()}`,
  sessionToken: `session-${core()}`,
};
const basicToken = Buffer.from(`${canaries.basicUser}:${canaries.basicPassword}`).toString("base64");

const LOGINS: Record<string, { readonly fields: Readonly<Record<string, string>>; readonly login: string }> =
  {
    http: {
      fields: { username: canaries.username, password: canaries.password, totp: canaries.totp },
      login: `
  type: http
  steps:
    - request: { method: GET, url: /login }
      extract: { csrf: { css: "input[name=_csrf]", attr: value } }
    - request:
        method: POST
        url: /login
        form: { username: "{{ $credential.username }}", password: "{{ $credential.password }}", _csrf: "{{ $csrf }}" }
    - request: { method: POST, url: /code, form: { code: "{{ $credential.totp.code }}" } }
      extract: { opened: { json: token } }
  session: { headers: { X-Session: "{{ $opened }}" } }
  check: { request: { url: /me }, expect: { status: [200] } }
  cache: 15m`,
    },
    basic: {
      fields: { username: canaries.basicUser, password: canaries.basicPassword },
      login: "\n  type: basic\n  username: username\n  password: password",
    },
    bearer: {
      fields: { token: canaries.bearerToken },
      login: "\n  type: bearer\n  token: token\n  cache: 15m",
    },
    headers: {
      fields: { key: canaries.headerKey },
      login: '\n  type: headers\n  headers: { X-Api-Key: "{{ $credential.key }}" }\n  cache: 15m',
    },
    none: { fields: { secret: canaries.stored }, login: "\n  type: none" },
  };

let refusing = false;
let target: Target;
let installation: Awaited<ReturnType<typeof install>>;
let caller: Caller;
let recorded: ReturnType<typeof recordAnswers>;
let apiKey: string;
let serviceOutput = "";
const planted = new Map<string, string>();
const hostedTokens: string[] = [];

before(async () => {
  target = await startTarget(answer);
  const deadUrl = await unreachableUrl();
  installation = await install();
  await installation.apply("account: acme", ...documents("", target.url), ...documents("_dead", deadUrl));
  apiKey = await installation.createKey("acme");
  recorded = recordAnswers();
  const service = await installation.serveProcess();
  service.child.stdout?.on("data", (text: string) => (serviceOutput += text));
  caller = openCaller(service.url, apiKey);
});

after(async () => {
  recorded?.stop();
  await installation?.[Symbol.asyncDispose]();
  await target?.close();
});

function documents(suffix: string, url: string): string[] {
  return Object.entries(LOGINS).flatMap(([type, { fields, login }]) => {
    const kinds = Object.keys(fields).map((key) => {
      const kind = key === "totp" ? "totp_secret" : key.endsWith("name") ? "text" : "password";
      return `  - { key: ${key}, type: ${kind}, required: true }`;
    });
    const strategy = `strat_${type}${suffix}`;
    return [
      `strategy: ${strategy}\naccount: acme\nhosts: [${url}]\nfields:\n${kinds.join("\n")}\nlogin:${login}`,
      `blueprint: read-${type}${suffix.replace("_", "-")}
account: acme
credentials: { slot: { strategy: ${strategy} } }
nodes:
  - { id: items, type: http, credential: slot, retry: { attempts: 2, initial: 10ms }, request: { url: /items }, records: items }
  - { id: page, type: http, credential: slot, retry: { attempts: 2, initial: 10ms }, request: { url: /page } }
  - { id: rows, type: parse, from: page, format: json }
  - { id: out, type: output, refKey: out, from: [items, rows] }`,
    ];
  });
}

/** One type's is too large for a row: its output and its result are objects. */
const itemFor = (login: string): object => ({
  login,
  ...(login === "http" && { filler: "x".repeat(10_000) }),
});

/** Lets in whom it knows, and says nothing of what it was sent. */
function answer(request: TargetRequest): TargetAnswer {
  if (request.path === "/login" && request.method === "GET")
    return { body: '<form><input name="_csrf" value="csrf-value"></form>' };
  if (request.path === "/login") {
    const form = new URLSearchParams(request.body);
    const isRight = form.get("username") === canaries.username && form.get("password") === canaries.password;
    return isRight
      ? { headers: { "set-cookie": `sid=${canaries.cookie}; Path=/` }, body: {} }
      : { status: 403, body: {} };
  }
  if (request.path === "/code") {
    const isRight = request.headers.cookie === `sid=${canaries.cookie}` && /^code=\d{6}$/.test(request.body);
    return isRight ? { body: { token: canaries.sessionToken } } : { status: 403, body: {} };
  }
  if (refusing && request.path !== "/me") return { status: 401, body: { error: "no" } };
  const login = loginOf(request);
  if (login === null) return { status: 401, body: {} };
  return { body: request.path === "/page" ? [{ row: 1 }] : { items: [itemFor(login)] } };
}

/** By which type of login a request is let in: each carries the whole, exact secret. */
function loginOf({ headers }: TargetRequest): string | null {
  if (headers.cookie === `sid=${canaries.cookie}` && headers["x-session"] === canaries.sessionToken)
    return "http";
  if (headers.authorization === `Basic ${basicToken}`) return "basic";
  if (headers.authorization === `Bearer ${canaries.bearerToken}`) return "bearer";
  if (headers["x-api-key"] === canaries.headerKey) return "headers";
  return headers.authorization === undefined && headers.cookie === undefined ? "none" : null;
}

async function unreachableUrl(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

async function runWith(type: string, suffix: string): Promise<any> {
  const key = `read-${type}${suffix.replace("_", "-")}`;
  const { body } = await caller.post(`/blueprints/${key}/trigger`, {
    credential_id: planted.get(type + suffix),
  });
  return (await caller.waitForRun(body.id)).body;
}

/** Everything outside the processes' memory. The database is a server of its own: the data folder holds no files of a cluster. */
async function surfaces(): Promise<readonly Surface[]> {
  return [
    ...(await dumpDatabase(installation.database.db)),
    ...readFolder(installation.dataFolder),
    { place: "standard error", bytes: Buffer.from(installation.logs()) },
    { place: "standard output", bytes: Buffer.from(serviceOutput) },
    ...recorded.answers,
  ];
}

test("every login type sends its whole credential: the runs that use the canaries complete", async () => {
  for (const suffix of ["", "_dead"]) {
    for (const [type, { fields }] of Object.entries(LOGINS)) {
      const session = await caller.post(
        "/credential-sessions",
        { strategy_id: `strat_${type}${suffix}`, name: `${type} login` },
        { "idempotency-key": `connect ${type}${suffix}` },
      );
      const hostedUrl: string = session.body.hosted_url;
      hostedTokens.push(new URL(hostedUrl).pathname.split("/").at(-1) ?? "");
      if (type === "http") {
        // A rejected form is shown again: without what was typed into its secret fields.
        const rejected = await submitHostedForm(hostedUrl, {
          password: canaries.password,
          totp: canaries.totp,
        });
        assert.equal(rejected.status, 422);
      }
      assert.equal((await submitHostedForm(hostedUrl, fields)).status, 200);
      assert.equal((await fetch(hostedUrl)).status, 410);
      const { body } = await caller.get(`/credential-sessions/${session.body.id}`);
      planted.set(type + suffix, body.credential_id);
    }
  }
  // Twice: by a login, and by a cached one.
  for (const _ of ["login", "cached"]) {
    await Promise.all(
      Object.keys(LOGINS).map(async (type) => {
        const done = await runWith(type, "");
        assert.equal(done.status, "completed", type);
        const { body } = await caller.get(`/blueprint-runs/${done.id}/results?deliveryMethod=direct`);
        assert.deepEqual(
          body.results.out.records.map((record: any) => record.data),
          [itemFor(type), { row: 1 }],
        );
        const presigned = await caller.get(`/blueprint-runs/${done.id}/results`);
        assert.equal((await fetch(presigned.body.results.out)).status, 200);
      }),
    );
  }
  assert.equal(
    target.requests.filter((request) => request.method === "POST").length,
    2,
    "one login by form, then its cached session",
  );
});

test("runs that the target refuses, and runs that don't reach it, fail", async () => {
  planted.set(
    "wrong",
    await connect(caller, "strat_http", { ...LOGINS["http"]?.fields, password: canaries.wrongPassword }),
  );
  const wrong = await caller.post("/blueprints/read-http/trigger", { credential_id: planted.get("wrong") });
  assert.equal((await caller.waitForRun(wrong.body.id)).body.started_at, null, "refused at the login");
  refusing = true;
  for (const suffix of ["", "_dead"]) {
    const ended = await Promise.all(Object.keys(LOGINS).map(async (type) => await runWith(type, suffix)));
    for (const done of ended) {
      assert.equal(done.status, "failed");
      assert.equal(done.error.code, "execution_failed");
    }
  }
  refusing = false;
  assert.match(installation.logs(), /run failed/, "the log says why");
});

test("the search finds a planted value in every form, in every kind of place", async () => {
  const control = (): string => awkward("control");
  const { db } = installation.database;
  const wanted: { readonly form: string; readonly place: string; readonly value: string }[] = [];
  const folder = join(installation.dataFolder, "objects", "planted");
  mkdirSync(folder, { recursive: true });
  await db.query("create schema planted");
  await db.query('create table planted."Odd name" (as_text text, as_bytes bytea, as_list text[])');
  const extra: Surface[] = [];
  for (const form of formsOf(control()).keys()) {
    const plant = (place: string): Buffer => {
      const value = control();
      wanted.push({ form, place, value });
      const needle = formsOf(value).get(form);
      assert.ok(needle);
      return Buffer.concat([Buffer.from("before "), needle, Buffer.from(" after")]);
    };
    const table = 'planted."Odd name"';
    await db.query(`insert into ${table} (as_text, as_bytes) values ($1, $2)`, [
      plant(`${table}.as_text`).toString("utf8"),
      plant(`${table}.as_bytes`),
    ]);
    const name = form.replace(/\W/g, "-");
    writeFileSync(join(folder, name), plant(`file objects/planted/${name}`));
    writeFileSync(join(folder, `${name}.br`), brotliCompressSync(plant(`file objects/planted/${name}.br`)));
    extra.push({ place: "standard error", bytes: plant("standard error") });
  }
  const all = [...(await surfaces()), ...extra];
  for (const { form, place, value } of wanted) {
    const found = search(all, formsOf(value));
    assert.ok(
      found.some((finding) => finding.form === form && finding.place === place),
      `${form} in ${place}`,
    );
  }
  // Inside an array PostgreSQL escapes quotes: there the part finds it that nothing changes.
  const inList = control();
  await db.query('insert into planted."Odd name" (as_list) values ($1)', [[inList]]);
  assert.deepEqual(search(await dumpDatabase(db), formsOf(inList.split(" ").at(-1) ?? "")), [
    { place: 'planted."Odd name".as_list', form: "raw" },
  ]);
});

test("a credential's value is found nowhere outside the sealed column", async () => {
  const all = await surfaces();
  for (const place of [
    "public.credential.sealed",
    "public.login_session.sealed",
    "public.run.error_detail",
    "public.run_step.log",
    "public.run_step.output",
    "public.run_result.content",
    "standard error",
  ]) {
    const surface = all.find((other) => other.place === place);
    assert.ok((surface?.bytes.length ?? 0) > 0, `${place} was searched and is not empty`);
  }
  assert.ok(
    all.some(({ place }) => place.startsWith("file objects/results/")) &&
      all.some(({ place }) => place.startsWith("answer ")),
  );

  const found: Record<string, readonly Finding[]> = {};
  const look = (name: string, value: string | Buffer, where = all): void => {
    const findings = search(where, formsOf(value));
    if (findings.length > 0) found[name] = findings;
  };
  for (const [name, value] of Object.entries(canaries)) {
    look(name, value);
    look(`${name}, its random part`, value.match(/[a-p]{40,}$/)?.[0] ?? value);
  }
  look("the authenticator's key", Buffer.from(Secret.fromBase32(canaries.totp).bytes));
  look("the Basic token", basicToken);
  // Nor may what opens an account or a form lie around: the caller alone has them.
  const stored = all.filter(({ place }) => !place.startsWith("answer "));
  look("the API key", apiKey, stored);
  for (const token of hostedTokens) look("a hosted link's token", token, stored);
  assert.deepEqual(found, {});
});

test("what is kept of a credential is a sealed JWE, and nothing of it is left after its delete", async () => {
  const { db } = installation.database;
  const id = planted.get("http") ?? "";
  const sealed = await db.query<{ sealed: Buffer }>(
    "select sealed from credential where id = $1 union all select sealed from login_session where credential_id = $1",
    [id],
  );
  assert.equal(sealed.length, 2, "the credential and its cached login");
  const ciphertexts = sealed.map((row) => {
    const jwe = JSON.parse(row.sealed.toString("utf8"));
    assert.deepEqual(Object.keys(jwe), ["protected", "encrypted_key", "iv", "ciphertext", "tag", "aad"]);
    const header = JSON.parse(Buffer.from(jwe.protected, "base64url").toString("utf8"));
    assert.deepEqual([header.alg, header.enc], ["ECDH-ES+A256KW", "A256GCM"]);
    return new Map([
      ["ciphertext", Buffer.from(jwe.ciphertext)],
      ["data key", Buffer.from(jwe.encrypted_key)],
    ]);
  });
  const places = async (): Promise<string[]> => {
    const all = await surfaces();
    return ciphertexts.flatMap((forms) => search(all, forms)).map(({ place, form }) => `${place} ${form}`);
  };
  assert.deepEqual(await places(), [
    "public.credential.sealed ciphertext",
    "public.credential.sealed data key",
    "public.login_session.sealed ciphertext",
    "public.login_session.sealed data key",
  ]);
  assert.equal((await caller.delete(`/credentials/${id}`)).status, 204);
  assert.deepEqual(await places(), []);
});

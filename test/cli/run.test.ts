// docs/run.md: no service is needed, and a recording has the exchanges without secrets.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openTarget, to, type Target } from "../documents/target.ts";
import { formsOf, search } from "../flow/canary-search.ts";
import { freePort } from "../free-port.ts";
import { runCommand, type CommandResult } from "../service-process.ts";
import { newFolder } from "./program.ts";
import { expectHeldJson } from "./held-surface.ts";

const USERNAME = 'canary-user "&<ö>';
const PASSWORD = "canary p&ss/word+=?ÿ";
const COOKIE = "canarycookie0123456789";
const TOTP = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";

let target: Target;
let folder: string;
before(async () => {
  folder = newFolder();
  target = await openTarget();
  target.on("POST /login", ({ body }) => {
    const form = new URLSearchParams(body);
    const isRight = form.get("user") === USERNAME && form.get("password") === PASSWORD && form.get("code");
    return isRight
      ? { ...to("/"), headers: { location: "/", "set-cookie": `session=${COOKIE}; Path=/` } }
      : { status: 403, text: "no" };
  });
  // It gives back whatever it was told, in every way in which it can.
  target.on("GET /items", ({ query, headers }) => {
    const page = Number(query.get("page") ?? "1");
    const echo = [USERNAME, PASSWORD, COOKIE].flatMap((value) =>
      [...formsOf(value).values()].map((form) => form.toString("latin1")),
    );
    return {
      headers: {
        "set-cookie": `more=${COOKIE}; Path=/`,
        authorization: `Bearer ${PASSWORD.length}`,
        link: `</items?u=${encodeURIComponent(USERNAME)}>; rel=self`,
        "x-echo": encodeURIComponent(PASSWORD),
      },
      json: {
        items: [1, 2].map((number) => ({
          number: page * 10 + number,
          paid: number === 1,
          password: PASSWORD,
          echo,
        })),
        cookie: headers.cookie,
        next: page < 2 ? page + 1 : null,
      },
    };
  });
  target.on("GET /scan", { bytes: Buffer.concat([Buffer.from([0xff, 0x00]), Buffer.from(COOKIE)]) });
  target.on("POST /notes", ({ body }) => ({
    status: 201,
    json: { id: `note of ${JSON.parse(body).number}` },
  }));
  writeFileSync(
    join(folder, "login.yaml"),
    JSON.stringify({ user: USERNAME, password: PASSWORD, totp: TOTP }),
  );
  writeFileSync(join(folder, "documents.yaml"), documents());
});
after(async () => {
  await target?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

// Only the strategy and the Blueprint: that there is an account is the service's matter.
const documents = (field = "number"): string => `strategy: strat_notes
account: acme
hosts: ["${target.url}"]
fields:
  - { key: user, type: text }
  - { key: password, type: password }
  - { key: totp, type: totp_secret }
login:
  type: http
  steps:
    - request:
        method: POST
        url: /login
        form: { user: "{{ $credential.user }}", password: "{{ $credential.password }}", code: "{{ $credential.totp.code }}" }
      expect: { status: [302] }
---
blueprint: notes
account: acme
credentials: { it: { strategy: strat_notes } }
metadata: [{ name: order, required: true }]
nodes:
  - { id: prefix, type: input, refKey: prefix, accepts: text, required: true }
  - id: items
    type: http
    credential: it
    request: { url: /items }
    paginate: { cursor: next, param: page }
    records: items
  - { id: lines, type: map, from: items, fields: { number: ${field}, paid: paid, note: $inputs.prefix & $metadata.order } }
  - { id: scan, type: http, credential: it, request: { url: /scan }, save: file }
  - { id: checked, type: validate, from: lines, rules: [{ assert: paid, field: paid, message: Not paid yet }] }
  - { id: gate, type: review, from: checked, title: Right? }
  - id: written
    type: http
    credential: it
    for_each: gate
    request: { method: POST, url: /notes, json: { number: "{{ number }}", note: "{{ note }}", token: "{{ $token }}" } }
    records: $
  - { id: seen, type: output, refKey: seen, from: checked }
  - { id: out, type: output, refKey: notes, from: written }
`;

const run = async (exitCode: number, ...more: readonly string[]): Promise<CommandResult> => {
  const result = await runCommand(["run", join(folder, "documents.yaml"), ...more], {
    LATCHKEY_EGRESS_ALLOW: "127.0.0.0/8",
    LATCHKEY_LOG_FORMAT: "json",
  });
  assert.equal(result.code, exitCode, `${more.join(" ")}: ${result.stdout}${result.stderr}`);
  return result;
};
const live = (): readonly string[] => ["--credential", `it=${join(folder, "login.yaml")}`, ...values];
const values = ["--input", "prefix=for ", "--metadata", "order=PO-7"];
const recording = (): string => join(folder, "notes.recording.json");

test("a run stops at a review and before a write, says so, and shows each node's records", async () => {
  const stopped = await run(1, ...live(), "--rows", "1");
  assert.match(stopped.stdout, /^items \(http\) 4 records {2}\d+\.\d ms\n/m);
  assert.match(
    stopped.stdout,
    /^ {2}record {2}valid {2}number {2}paid {2}note +errors\n {2}0 +yes +11 +true +for PO-7\n {2}… and 3 more$/m,
  );
  assert.match(stopped.stdout, /^checked \(validate\) 4 records, 2 invalid/m);
  assert.match(stopped.stdout, /^Review at gate: Right\? \(4 records, 2 invalid\): not decided$/m);
  assert.match(stopped.stderr, /^The run awaits a review; --approve approves reviews without changes\.$/m);

  const refused = await run(1, ...live(), "--approve", "--json", "--rows", "1");
  assert.match(
    refused.stderr,
    /^Node written would write to the target; nothing was sent\. Use --allow-writes to send it\.$/m,
  );
  assert.equal(target.seen("POST /notes").length, 0);
  const { status, error, nodes } = JSON.parse(refused.stdout);
  assert.deepEqual([status, error], ["failed", refused.stderr.trim()]);
  assert.deepEqual(
    nodes.map(({ id, failed, total, records }: any) => [id, failed, total ?? null, records?.length ?? null]),
    [
      ["prefix", false, null, null],
      ["items", false, 4, 1],
      ["lines", false, 4, 1],
      ["scan", false, null, null],
      ["checked", false, 4, 1],
      ["gate", false, 4, 1],
      ["written", true, null, null],
    ],
  );
});

test("what is recorded holds no value of the credential, in no form; replayed, it gives the same results without any request", async () => {
  const made = await run(
    0,
    ...live(),
    "--approve",
    "--allow-writes",
    "--record",
    recording(),
    "--json",
    "--rows",
    "9",
  );
  assert.match(made.stderr, /Recorded 7 exchanges in /);
  assert.equal(target.seen("POST /notes").length, 4);
  const results = JSON.parse(made.stdout).results;
  assert.deepEqual(results.notes.records[0], { data: { id: "note of 11" }, errors: [], isValid: true });

  assert.equal(statSync(recording()).mode & 0o777, 0o600, "a recording is its owner's alone");
  const bytes = readFileSync(recording());
  for (const value of [USERNAME, PASSWORD, COOKIE, TOTP])
    assert.deepEqual(search([{ place: "recording", bytes }], formsOf(value)), [], value);
  const { exchanges } = JSON.parse(bytes.toString("utf8"));
  assert.ok(bytes.includes("[REDACTED]"), "the target did echo");
  for (const { request, response } of exchanges) {
    assert.ok(!request.url.includes("/login"), "no login is recorded");
    assert.deepEqual(
      Object.keys(response.headers).filter((name) => !["content-type", "link", "location"].includes(name)),
      [],
    );
  }
  const scan = Buffer.from(
    exchanges.find(({ request }: any) => request.url.endsWith("/scan")).response.body.base64,
    "base64",
  );
  assert.ok(!scan.includes(COOKIE));

  const before = target.all.length;
  const replayed = await run(0, "--replay", recording(), "--approve", "--check", "--json", "--rows", "9");
  assert.match(replayed.stderr, /The results match the recording\./);
  assert.deepEqual(JSON.parse(replayed.stdout).results, results);
  expectHeldJson("run", JSON.parse(replayed.stdout));
  assert.equal(target.all.length, before);
});

test("a replay names what differs: the results, or the request that is not in the recording", async () => {
  const changed = join(folder, "changed.yaml");
  writeFileSync(changed, documents("number + 1").replace("- { id: seen,", "- { id: seen2,"));
  const before = target.all.length;
  const other = await runCommand(["run", changed, "--replay", recording(), "--approve", "--check"], {});
  assert.equal(other.code, 1);
  assert.match(
    other.stderr,
    /^Node written: .*POST http:\/\/127\.0\.0\.1:\d+\/notes: the recording has it with another body; record it again with --record/m,
  );

  writeFileSync(changed, documents().replace("Not paid yet", "Not paid"));
  const differs = await runCommand(["run", changed, "--replay", recording(), "--approve", "--check"], {});
  assert.equal(differs.code, 1);
  assert.match(differs.stderr, /^seen\.records\[1\]\.errors\[0\]\.message: "Not paid yet" → "Not paid"$/m);
  assert.match(differs.stderr, /^The results differ from the recording\./m);

  writeFileSync(changed, documents("$number($string(paid))"));
  const failed = await runCommand(["run", changed, "--replay", recording()], {});
  assert.equal(failed.code, 1);
  assert.match(
    failed.stderr,
    /^Node lines: Record 0: fields\.number: expression `\$number\(\$string\(paid\)\)`: /m,
  );
  assert.equal(target.all.length, before);
});

test("a request that can't be run says what is missing, with exit code 2", async () => {
  const wrong: readonly (readonly [options: readonly string[], says: RegExp])[] = [
    [
      values,
      /The slot it needs a credential of strat_notes: --credential it=fields\.yaml, .*CREDENTIAL_IT_PASSWORD/,
    ],
    [[...live().slice(0, 2), "--metadata", "order=1"], /`prefix` is required\. Give it with --input prefix=/],
    [[...live(), "--input", "perfix=1"], /No INPUT has the refKey perfix; did you mean `prefix`\?/],
    [["--replay", recording(), "--record", "x.json"], /--record and --replay can't go together/],
    [["--replay", recording(), "--trace", "x"], /--replay takes no --trace/],
  ];
  for (const [options, says] of wrong) assert.match((await run(2, ...options)).stderr, says);
});

/** The files of a trace, by name, each its owner's alone. */
function traced(at: string): ReadonlyMap<string, string> {
  assert.equal(statSync(at).mode & 0o777, 0o700);
  return new Map(
    readdirSync(at)
      .toSorted()
      .map((name) => {
        assert.equal(statSync(join(at, name)).mode & 0o777, 0o600, name);
        return [name, readFileSync(join(at, name), "utf8")];
      }),
  );
}

test("--trace keeps every exchange in its order, logins too, and no value of the credential or the session, in no form", async () => {
  const at = join(folder, "trace");
  const made = await run(0, ...live(), "--approve", "--allow-writes", "--trace", at);
  assert.match(made.stderr, /^Kept 8 exchanges in /m);
  const files = traced(at);
  assert.deepEqual([...files.keys()].slice(0, 5), [
    "0001-login-step-1-POST-login.txt",
    "0002-items.txt",
    "0003-items.txt",
    "0004-scan.txt",
    "0005-written.txt",
  ]);
  const login = files.get("0001-login-step-1-POST-login.txt") ?? "";
  assert.match(login, /^# 1\. login step 1 \(POST \/login\)\n\nPOST http:\/\/127\.0\.0\.1:\d+\/login\n/);
  assert.match(login, /^user=\S+&password=\S+&code=\S+$/m);
  assert.match(login, /^# 302 from \S+\/login after \d+ ms$/m);
  assert.match(login, /^set-cookie: session=…; Path=\/$/m);
  const items = files.get("0002-items.txt") ?? "";
  assert.match(items, /^cookie: … \(added by the login\)$/m);
  assert.match(items, /"number":11,"paid":true/);
  assert.match(files.get("0004-scan.txt") ?? "", /^# \d+ bytes that are not text$/m);
  const all = [...files].map(([place, text]) => ({ place, bytes: Buffer.from(text) }));
  for (const value of [USERNAME, PASSWORD, COOKIE, TOTP])
    assert.deepEqual(search(all, formsOf(value)), [], value);
  const code = new URLSearchParams(target.seen("POST /login").at(-1)?.body).get("code") ?? "no code";
  assert.deepEqual(search(all, new Map([["code", Buffer.from(`code=${code}`)]])), []);
});

test("--trace works when the login fails or the target is away, cuts long bodies with a note, and takes a new folder alone", async () => {
  const wrong = join(folder, "wrong.yaml");
  writeFileSync(wrong, JSON.stringify({ user: USERNAME, password: "p1", totp: TOTP }));
  const at = join(folder, "trace-failed");
  const failed = await run(1, "--credential", `it=${wrong}`, ...values, "--trace", at);
  assert.match(failed.stderr, /^The answer: 403 from \S+\/login \(text\/plain; charset=utf-8\)\n {2}no$/m);
  const [login = ""] = traced(at).values();
  assert.match(login, /^# 403 from [\s\S]*^no$/m);
  assert.match(login, /password=…&/);
  const before = target.all.length;
  const again = await run(2, ...live(), "--trace", at);
  assert.match(again.stderr, /--trace: \S+trace-failed is not empty\. Name a new folder\./);
  assert.equal(target.all.length, before);

  target.on("GET /long", { text: "line of text\n".repeat(30_000) });
  const file = join(folder, "long.yaml");
  const document = (url: string): string =>
    `blueprint: long\naccount: acme\nhosts: ["${url}"]\nnodes:
  - { id: long, type: http, retry: { attempts: 1 }, request: { url: "${url}/long" } }
  - { id: rows, type: parse, from: long, format: csv }
  - { id: out, type: output, refKey: out, from: rows }\n`;
  const trace = async (url: string, name: string): Promise<string> => {
    writeFileSync(file, document(url));
    await runCommand(["run", file, "--trace", join(folder, name)], { LATCHKEY_EGRESS_ALLOW: "127.0.0.0/8" });
    return traced(join(folder, name)).get("0001-long.txt") ?? "";
  };
  const long = await trace(target.url, "trace-long");
  assert.match(long, /line of text\n[\s\S]*^# cut here: the body has 390000 bytes$/m);
  assert.ok(long.length < 270_000);
  assert.match(
    await trace(`http://127.0.0.1:${await freePort()}`, "trace-away"),
    /^# no answer after \d+ ms: the connection to 127\.0\.0\.1:\d+ failed \(ECONNREFUSED\)$/m,
  );
});

test("a login on the target's own pages is run with an access token of the author's, which no recording holds", async () => {
  const token = "canary-access-token-4711";
  const seen: (string | undefined)[] = [];
  target.on("GET /me", ({ headers }) => {
    seen.push(headers.authorization);
    return { json: { name: "Ana", echo: headers.authorization ?? "" } };
  });
  const file = join(folder, "oauth.yaml");
  const recorded = join(folder, "oauth.recording.json");
  writeFileSync(
    file,
    `strategy: strat_bank
account: acme
name: Bank
hosts: [${target.url}]
fields: [{ key: label, label: Label, type: text, required: false }]
login:
  type: oauth2
  client_id: latchkey
  authorization_url: ${target.url}/authorize
  token_url: ${target.url}/token
---
blueprint: profile
account: acme
name: Profile
credentials: { bank: { strategy: strat_bank } }
nodes:
  - { id: me, type: http, credential: bank, request: { url: /me }, records: $ }
  - { id: out, type: output, refKey: me, from: me }
`,
  );
  const environment = { LATCHKEY_EGRESS_ALLOW: "127.0.0.0/8", LATCHKEY_LOG_FORMAT: "json" };
  const without = await runCommand(["run", file], environment);
  assert.equal(without.code, 2, without.stdout + without.stderr);
  assert.match(
    without.stderr,
    /strat_bank uses a sign-in on the target's own pages.*CREDENTIAL_BANK_ACCESS_TOKEN/,
  );
  const result = await runCommand(["run", file, "--record", recorded], {
    ...environment,
    CREDENTIAL_BANK_ACCESS_TOKEN: token,
  });
  assert.equal(result.code, 0, result.stdout + result.stderr);
  assert.deepEqual(seen, [`Bearer ${token}`]);
  assert.equal(result.stdout.includes(token) || readFileSync(recorded, "utf8").includes(token), false);
});

// docs/decisions/0023: one entry for each effect, none missing, none extra; no entry, no effect.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { FAILPOINTS } from "#lib/failpoint.ts";
import { connect, openCaller, submitHostedForm, type Caller } from "../caller.ts";
import { ledger, LEDGER_LOGIN, ledgerDocuments, startTarget, type Target } from "../flow/target.ts";
import { assertInvariants } from "../invariants.ts";
import { install, type ServiceProcess } from "../service.ts";
import { checkExport, isCheckpoint } from "./offline.ts";
import { inTier } from "../tiers.ts";

let target: Target;
let installation: Awaited<ReturnType<typeof install>>;
let service: ServiceProcess;
let caller: Caller;
let apiKey: string;

before(async () => {
  target = await startTarget(ledger);
  installation = await install();
  await installation.apply(...ledgerDocuments(target.url, { cache: "15m" }));
  service = await installation.serveProcess();
  apiKey = await installation.createKey("acme");
  caller = openCaller(service.url, apiKey);
});

afterEach(async () => {
  target.reset();
  await installation.database.db.query("drop trigger if exists refuse_audit on audit_entry");
});

after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.close();
});

interface Row {
  readonly action: string;
  readonly subject: string;
  readonly actor: string;
  readonly run: string | null;
  readonly detail: any;
}

/** The entries from the `since`th on, in the order in which they were made. */
async function entries(since = 0): Promise<readonly Row[]> {
  const rows = await installation.database.db.query<Row & { detail: string }>(
    `select action, subject_id as subject, concat_ws(' ', actor_kind, actor_id) as actor, run_id as run, detail
     from audit_entry order by occurred_at, id offset $1`,
    [since],
  );
  return rows.map((row) => ({ ...row, detail: JSON.parse(row.detail) }));
}

const count = async (table: string, where = "true"): Promise<number> =>
  (await installation.database.db.query(`select 1 from ${table} where ${where}`)).length;

/** The database refuses entries from now on; only those of one action, if one is named. */
async function refuseEntries(action?: string): Promise<void> {
  await installation.database.db.query(
    `create or replace function refuse_audit() returns trigger language plpgsql as $$ begin raise exception 'no audit'; end $$;
     create or replace trigger refuse_audit before insert on audit_entry for each row
       ${action === undefined ? "" : `when (new.action = '${action}')`} execute function refuse_audit()`,
  );
}

const names = (rows: readonly Row[]): readonly string[] => rows.map(({ action }) => action);

async function runWith(credential: string): Promise<{ id: string; status: string }> {
  const { status, body } = await caller.post("/blueprints/ledger/trigger", { credential_id: credential });
  assert.equal(status, 202);
  return { id: body.id, status: (await caller.waitForRun(body.id)).body.status };
}

test("setting up is on record: the operator, the documents with their versions, the key", async () => {
  const rows = await entries();
  // By the start of the service, which comes beside the making of the key.
  const isStart = ({ action }: Row): boolean => action === "credential.bind";
  assert.deepEqual(
    rows.filter(isStart).map(({ actor, subject, detail }) => [actor, subject, detail.credentials]),
    [["service", "installation", 0]],
  );
  assert.deepEqual(names(rows.filter((row) => !isStart(row))), [
    "row.sign",
    "operator.create",
    "config.apply",
    "config.apply",
    "config.apply",
    "config.apply",
    "key.create",
  ]);
  assert.deepEqual(
    rows.slice(2, 6).map(({ subject, detail }) => [detail.kind, subject, detail.change, detail.version]),
    [
      ["account", "acme", "create", null],
      ["strategy", "strat_ledger", "create", 1],
      ["blueprint", "ledger", "create", 1],
      ["blueprint", "open-list", "create", 1],
    ],
  );
  // Applied again, nothing has changed, and there is nothing to tell.
  await installation.apply(...ledgerDocuments(target.url, { cache: "15m" }));
  await installation.apply(ledgerDocuments(target.url, { cache: "15m", concurrency: 3 })[1] ?? "");
  const [changed, ...more] = await entries(rows.length);
  assert.equal(more.length, 0);
  assert.deepEqual(
    [changed?.subject, changed?.detail.change, changed?.detail.version],
    ["strat_ledger", "update", 2],
  );
});

test("the life of a credential is on record, each use with its run and receiver, nothing twice and nothing secret", async () => {
  const since = (await entries()).length;
  const session = await caller.post(
    "/credential-sessions",
    { strategy_id: "strat_ledger" },
    { "idempotency-key": "life" },
  );
  const replay = await caller.post(
    "/credential-sessions",
    { strategy_id: "strat_ledger" },
    { "idempotency-key": "life" },
  );
  assert.equal(replay.headers.get("idempotent-replay"), "true");
  assert.equal((await caller.post("/credential-sessions", { strategy_id: "strat_nobody" })).status, 422);
  await submitHostedForm(session.body.hosted_url, LEDGER_LOGIN);
  await submitHostedForm(session.body.hosted_url, LEDGER_LOGIN).catch(() => {});
  const credential = (await caller.get(`/credential-sessions/${session.body.id}`)).body.credential_id;
  const first = await runWith(credential);
  const second = await runWith(credential);
  assert.deepEqual([first.status, second.status], ["completed", "completed"]);
  assert.equal((await caller.delete(`/credentials/${credential}`)).status, 204);
  assert.equal((await caller.delete(`/credentials/${credential}`)).status, 404);

  const rows = await entries(since);
  const key = rows[0]?.actor;
  const use = (action: string, run: string, detail: object) => ({
    action,
    subject: credential,
    actor: `run ${run}`,
    run,
    detail,
  });
  const strategy = "strat_ledger";
  assert.match(String(key), /^api_key key_\w+$/);
  assert.deepEqual(rows, [
    { action: "session.create", subject: session.body.id, actor: key, run: null, detail: { strategy } },
    {
      action: "credential.submit",
      subject: credential,
      actor: `end_user ${session.body.id}`,
      run: null,
      detail: { strategy, strategy_version: 2 },
    },
    use("credential.open", first.id, { what: "credential", strategy }),
    use("credential.send", first.id, { origin: target.url }),
    use("credential.open", second.id, { what: "credential", strategy }),
    use("credential.open", second.id, { what: "cached_login", strategy }),
    use("credential.send", second.id, { origin: target.url }),
    { action: "credential.delete", subject: credential, actor: key, run: null, detail: {} },
  ]);
  const text = JSON.stringify(await installation.database.db.query("select * from audit_entry"));
  for (const secret of [LEDGER_LOGIN.password, "ledger-session"]) assert.ok(!text.includes(secret));
});

test("no entry, no effect: session, submit, delete, key, revocation, document", async () => {
  const credential = await connect(caller, "strat_ledger", LEDGER_LOGIN);
  const { body: open } = await caller.post("/credential-sessions", { strategy_id: "strat_ledger" });
  const { stdout } = await installation.command("keys", "create", "--account", "acme", "--json");
  const { id: keyId } = JSON.parse(stdout);
  const tables = ["credential_session", "credential", "idempotency_key", "api_key", "strategy_version"];
  const counts = async (): Promise<number[]> =>
    await Promise.all(tables.map(async (table) => await count(table)));
  const [before, entriesBefore] = [await counts(), (await entries()).length];

  await refuseEntries();
  const key = { "idempotency-key": "refused" };
  assert.equal((await caller.post("/credential-sessions", { strategy_id: "strat_ledger" }, key)).status, 500);
  const submitted = await submitHostedForm(open.hosted_url, LEDGER_LOGIN);
  assert.equal(submitted.status, 500);
  assert.equal((await caller.delete(`/credentials/${credential}`, key)).status, 500);
  for (const command of [
    ["keys", "create", "--account", "acme"],
    ["keys", "revoke", keyId],
  ]) {
    assert.equal((await installation.command(...command)).code, 1, command.join(" "));
  }
  await assert.rejects(installation.apply(ledgerDocuments(target.url, { concurrency: 7 })[1] ?? ""));

  assert.deepEqual(await counts(), before);
  assert.equal((await entries()).length, entriesBefore);
  assert.equal((await caller.get(`/credential-sessions/${open.id}`)).body.status, "pending");
  assert.equal(await count("api_key", `id = '${keyId}' and revoked_at is null`), 1);

  await installation.database.db.query("drop trigger refuse_audit on audit_entry");
  assert.equal((await caller.post("/credential-sessions", { strategy_id: "strat_ledger" }, key)).status, 201);
  assert.equal((await caller.delete(`/credentials/${credential}`)).status, 204);
});

for (const action of ["credential.open", "credential.send"]) {
  test(`no entry, no effect: when ${action} can't be written the run fails and the target receives nothing`, async () => {
    const credential = await connect(caller, "strat_ledger", LEDGER_LOGIN);
    await refuseEntries(action);
    assert.equal((await runWith(credential)).status, "failed");
    assert.deepEqual(target.requests, []);
    await installation.database.db.query("drop trigger refuse_audit on audit_entry");
    assert.equal((await runWith(credential)).status, "completed");
  });
}

test("a cached login is not used when its opening can't be written", async () => {
  const credential = await connect(caller, "strat_ledger", LEDGER_LOGIN);
  assert.equal((await runWith(credential)).status, "completed");
  target.reset();
  await refuseEntries("credential.open");
  assert.equal((await runWith(credential)).status, "failed");
  assert.deepEqual(target.requests, []);
});

test("a delete that fails takes its tombstone back", async () => {
  const credential = await connect(caller, "strat_ledger", LEDGER_LOGIN);
  const file = join(installation.dataFolder, "tombstones.ndjson");
  await service.end();
  service = await installation.serveProcess({ LATCHKEY_FAILPOINTS: "credential.after_tombstone=throw" });
  caller = openCaller(service.url, apiKey);
  assert.equal((await caller.delete(`/credentials/${credential}`)).status, 500);
  const lines = (): readonly any[] =>
    readFileSync(file, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  assert.deepEqual(
    lines()
      .slice(-2)
      .map(({ deleted, undone }) => deleted ?? `-${undone}`),
    [credential, `-${credential}`],
  );
  assert.equal((await caller.delete(`/credentials/${credential}`)).status, 204);
  const [entry] = (await entries()).slice(-1);
  assert.equal(entry?.action, "credential.delete");
  assert.equal(lines().at(-1).deleted, credential);
  const [row] = await installation.database.db.query<{ id: string }>(
    `select id from audit_entry where action = 'credential.delete' and subject_id = $1`,
    [credential],
  );
  assert.equal(lines().at(-1).entry, row?.id, "the tombstone names its receipt");
});

test("a closer that is killed at any of its points leaves nothing half done: the next one goes on", async () => {
  await service.end();
  const points = FAILPOINTS.filter((point) => /^audit\..*_(close|checkpoint)$/.test(point));
  assert.equal(points.length, 4);
  for (const point of inTier(points, (each) => each.startsWith("audit.before"))) {
    const killed = await installation.serveProcess({ LATCHKEY_FAILPOINTS: `${point}=kill` });
    const died = new Promise((resolve) => killed.child.once("exit", (_code, signal) => resolve(signal)));
    // Something to close; the process may be killed before it answers.
    await openCaller(killed.url, apiKey)
      .post("/credential-sessions", { strategy_id: "strat_ledger" })
      .catch(() => {});
    // The checkpoint is written at the latest when the service stops.
    if (point.endsWith("checkpoint")) await killed.end();
    assert.equal(await died, "SIGKILL", point);
  }
  service = await installation.serveProcess();
  caller = openCaller(service.url, apiKey);
  await caller.post("/credential-sessions", { strategy_id: "strat_ledger" });
  await service.end();
  assert.equal(await count("audit_entry", "sequence is null"), 0);
  const { code, stdout } = await installation.command("audit", "verify");
  assert.equal(code, 0, stdout);
  await assertInvariants(installation);
});

test("`audit export` can be checked offline with the public key alone, and `audit verify` exits with 1 when a superuser was at it", async () => {
  const exported = await installation.command("audit", "export", "--json");
  assert.equal(exported.code, 0);
  const lines = exported.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const entryLines = lines.filter((line) => line.format === undefined);
  assert.equal(entryLines.length, (await entries()).length);
  const publicKey = lines[0].public_key;
  assert.deepEqual(checkExport(lines, publicKey), []);
  const checkpoints = readFileSync(join(installation.dataFolder, "audit-checkpoints.ndjson"), "utf8");
  for (const line of checkpoints.trim().split("\n")) assert.ok(isCheckpoint(JSON.parse(line), publicKey));

  const since = entryLines[entryLines.length - 2].occurred_at;
  const part = await installation.command("audit", "export", "--account", "acme", "--since", since, "--json");
  const partLines = part.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.ok(partLines.length > 1 && partLines.length < 6);
  assert.deepEqual(checkExport(partLines, publicKey), []);
  const people = await installation.command("audit", "export", "--account", "acme");
  assert.match(people.stdout, /credential\.delete +cred_\w+ +api_key key_/);
  assert.equal((await installation.command("audit", "export", "--account", "nobody")).code, 1);
  assert.equal((await installation.command("audit", "export", "--since", "yesterday")).code, 2);

  await installation.database.db.transaction(async (tx) => {
    await tx.query("set local session_replication_role = replica");
    await tx.query(
      "update audit_entry set actor_id = 'key_another' where chain <> 'installation' and sequence = 6",
    );
  });
  const verified = await installation.command("audit", "verify");
  assert.equal(verified.code, 1);
  assert.match(
    verified.stdout,
    /^installation: \d+ entries verified\nacme: changed: entry 6 \(aud_\w+\) was changed$/m,
  );
  const asJson = JSON.parse(
    (await installation.command("audit", "verify", "--account", "acme", "--json")).stdout,
  );
  assert.equal(asJson.chains[0].findings[0].sequence, 6);
});

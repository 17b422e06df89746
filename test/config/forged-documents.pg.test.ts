// SECURITY.md: a version that somebody else has written, and one that was put back, send nothing anywhere.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { getVersion } from "#actions/operators/get-documents.ts";
import { must } from "#lib/assert.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { openTarget, type Target } from "../documents/target.ts";
import { install, type Installation, type RunningService } from "../service.ts";

const SECRET = "canary-of-the-forged-documents";

/** Somebody else's listener. */
let trap: Target;
let target: Target;
let installation: Installation & AsyncDisposable;
let api: RunningService;
let caller: Caller;
let credential: string;

let applied = 0;
/** A new version of both documents. */
async function applyAgain(): Promise<void> {
  applied++;
  await installation.apply(
    `strategy: strat_portal
account: acme
name: Version ${applied}
hosts: [${target.url}]
fields: [{ key: token, label: Token, type: password, required: true }]
login: { type: bearer, token: token }`,
    `blueprint: read
account: acme
name: Version ${applied}
credentials: { portal: { strategy: strat_portal } }
nodes:
  - { id: items, type: http, credential: portal, request: { method: GET, url: ${target.url}/items }, records: items }
  - { id: out, type: output, refKey: items, from: items }`,
  );
}

before(async () => {
  [trap, target] = [await openTarget(), await openTarget()];
  for (const each of [trap, target]) each.on("GET /items", { json: { items: [{ id: "1" }] } });
  installation = await install();
  await installation.apply("account: acme");
  await applyAgain();
  api = await installation.serve({}, ["api"]);
  caller = openCaller(api.url, await installation.createKey("acme"));
  credential = await connect(caller, "strat_portal", { token: SECRET });
});
after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.[Symbol.asyncDispose]();
  await trap?.[Symbol.asyncDispose]();
});

const query = async <T>(text: string, values: readonly unknown[] = []): Promise<readonly T[]> =>
  await installation.database.db.query<T>(text, values);

const trigger = async () => await caller.post("/blueprints/read/trigger", { credential_id: credential });

/** What became of a run that was triggered before, carried by a worker that starts now. */
async function carried(id: string): Promise<{ readonly status: string; readonly detail: string }> {
  const worker = await installation.serve({}, ["worker"]);
  const { body } = await caller.waitForRun(id);
  await worker.end();
  const [row] = await query<{ detail: string | null }>(
    "select error_detail as detail from run where id = $1",
    [id],
  );
  return { status: body.status, detail: row?.detail ?? "" };
}

/** As it was: the row with the signature that it had. */
async function snapshot(table: "strategy" | "blueprint"): Promise<() => Promise<void>> {
  const [row] = await query<Record<string, unknown>>(
    `select current_version, row_serial, row_mac from ${table}`,
  );
  const { current_version: version, row_serial: serial, row_mac: mac } = must(row, "the row");
  return async () =>
    void (await query(`update ${table} set current_version = $1, row_serial = $2, row_mac = $3`, [
      version,
      serial,
      mac,
    ]));
}

const TO_THE_TRAP = "replace(document, $1, $2)";

/** What is done to the database after a run was triggered, and the row that its failure names. */
const FORGED: Readonly<Record<string, { readonly forge: () => Promise<void>; readonly row: RegExp }>> = {
  "a version of a strategy that was inserted and put in force": {
    forge: async () =>
      void (await query(
        `with planted as (
           insert into strategy_version (account_id, strategy_id, version, document)
           select account_id, strategy_id, version + 1, ${TO_THE_TRAP} from strategy_version order by version desc limit 1
           returning version)
         update strategy set current_version = (select version from planted)`,
        [target.url, trap.url],
      )),
    row: /^The row strategy acct_\w+\/strat_portal of the database was changed/,
  },
  "a version of a strategy that was changed in its place": {
    forge: async () =>
      void (await query(`update strategy_version set document = ${TO_THE_TRAP}`, [target.url, trap.url])),
    row: /^The row strategy_version acct_\w+\/strat_portal\/\d+ of the database was changed/,
  },
  "a version of a Blueprint that was changed in its place": {
    forge: async () =>
      void (await query(`update blueprint_version set document = ${TO_THE_TRAP}`, [target.url, trap.url])),
    row: /^The row blueprint_version bp_\w+\/\d+ of the database was changed/,
  },
  "a version without a signature": {
    forge: async () => void (await query("update strategy_version set row_mac = null")),
    row: /^The row strategy_version acct_\w+\/strat_portal\/\d+ of the database has no signature/,
  },
  "a pointer to the version in force that was moved back": {
    forge: async () => void (await query("update strategy set current_version = current_version - 1")),
    row: /^The row strategy acct_\w+\/strat_portal of the database was changed/,
  },
};

for (const [what, { forge, row }] of Object.entries(FORGED)) {
  test(`${what} is not used: the run fails, names the row, and sends nothing; to apply the document again puts it right`, async () => {
    await applyAgain();
    const { body } = await trigger();
    await forge();
    const before = target.all.length;
    const { status, detail } = await carried(body.id);
    assert.deepEqual([trap.all.length, target.all.length - before, status], [0, 0, "failed"]);
    assert.match(detail, row);
    assert.ok(!detail.includes(trap.url) && !detail.includes(SECRET));
    const alarms = await query<{ name: string }>("select kind || ' ' || id as name from row_alarm");
    assert.ok(alarms.some(({ name }) => detail.startsWith(`The row ${name} of the database`)));
    await applyAgain();
    assert.equal((await carried((await trigger()).body.id)).status, "completed");
  });
}

test("a row that was put back with the signature that it had is older than the audit log says: nothing is triggered or sent", async () => {
  for (const table of ["strategy", "blueprint"] as const) {
    const putBack = await snapshot(table);
    await applyAgain();
    const { body } = await trigger();
    await putBack();
    const sent = target.all.length;
    // Triggers and runs, of a process that has seen the newer one and of one that has not.
    const refused = await trigger();
    assert.deepEqual(
      [refused.status, /outdated|row|strategy_version|blueprint/.test(refused.body.error?.message ?? "")],
      [500, false],
    );
    if (table === "strategy") {
      const { status, detail } = await carried(body.id);
      assert.equal(status, "failed");
      assert.match(
        detail,
        /^The row strategy acct_\w+\/strat_portal of the database is older than the newest version/,
      );
    }
    assert.equal(target.all.length, sent);
    await applyAgain();
    assert.equal((await carried((await trigger()).body.id)).status, "completed");
  }
});

test("an audit entry that somebody else has written says nothing: a genuine row goes on", async () => {
  await applyAgain();
  await query(
    `insert into audit_entry (id, account_id, occurred_at, actor_kind, action, subject_id, detail, seal)
     select 'aud_forged', account_id, app_now(), 'cli', 'config.apply', 'strat_portal',
       json_build_object('row', 'strategy/' || account_id || '/' || id, 'serial', 1000000)::text, decode(repeat('00', 32), 'hex')
     from strategy`,
  );
  assert.equal((await carried((await trigger()).body.id)).status, "completed");
});

test("every alarm is in the audit log once, in the log of the service, and names the row", async () => {
  const entries = await query<{ kind: string; id: string }>(
    `select detail::json ->> 'kind' as kind, subject_id as id from audit_entry where action = 'row.refuse'`,
  );
  const alarms = await query<{ kind: string; id: string }>("select kind, id from row_alarm");
  const names = (rows: readonly { readonly kind: string; readonly id: string }[]): readonly string[] =>
    rows.map(({ kind, id }) => `${kind} ${id}`).toSorted();
  assert.ok(alarms.length >= 3);
  assert.deepEqual(
    names(alarms).filter((name) => !names(entries).includes(name)),
    [],
  );
  for (const { kind, id } of alarms)
    assert.ok(installation.logs().includes(`"alarm":"row_refused","kind":"${kind}","id":"${id}"`));
});

test("an earlier version that somebody else has written is neither shown to an operator nor put in force again", async () => {
  await applyAgain();
  const [row] = await query<{ version: number }>("select current_version - 1 as version from blueprint");
  const version = must(row, "the version before").version;
  await query(`update blueprint_version set document = ${TO_THE_TRAP} where version = $3`, [
    target.url,
    trap.url,
    version,
  ]);
  // What the dashboard's "put in force again" reads.
  const { db } = installation.database;
  const name = { kind: "blueprint", account: "acme", name: "read" } as const;
  await assert.rejects(getVersion(db, name, { version: String(version), against: undefined }), {
    name: "OperatorError",
    message: new RegExp(`^The row blueprint_version bp_\\w+/${version} of the database was changed`),
  });
  assert.equal((await carried((await trigger()).body.id)).status, "completed");
});

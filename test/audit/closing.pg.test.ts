// docs/decisions/0023: append-only, chained within a second without ever making a writer wait, written down outside.
import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { AuditCheckpoints, readCheckpoints } from "#actions/audit/checkpoint-audit.ts";
import { closeAudit } from "#actions/audit/close-audit.ts";
import { verifyAudit, verifyChain } from "#actions/audit/verify-audit.ts";
import { listChainEnds, listUnusualOpenings, recordAudit } from "#db/audit-entries.ts";
import { openPool } from "#db/connection/pool.ts";
import { limits } from "#domain/limits.ts";
import { openAppendLog, readLog } from "#lib/append-log.ts";
import { eventOf, openAuditLog, writeEntries, type AuditLog } from "./audit-log.ts";

const CHAIN = "acct_acme";

let log: AuditLog;
let folder: string;

before(() => {
  folder = mkdtempSync(join(tmpdir(), "latchkey-audit-"));
});
beforeEach(async () => {
  log = await openAuditLog(CHAIN, "acct_other");
});
afterEach(() => log?.drop());
after(() => rmSync(folder, { recursive: true, force: true }));

test("UPDATE, DELETE and TRUNCATE are refused, before and after an entry has its place", async () => {
  await writeEntries(log, CHAIN, 2);
  for (const chained of [false, true]) {
    if (chained) assert.equal(await closeAudit(log.services()), 2);
    for (const statement of [
      "update audit_entry set detail = '{}'",
      "update audit_entry set account_id = null",
      "update audit_entry set sequence = sequence + 5, hash = seal, signature = seal || seal, detail = '{\"a\":1}'",
      "delete from audit_entry",
      "truncate audit_entry",
      "truncate audit_entry cascade",
    ]) {
      await assert.rejects(log.db.query(statement), { code: "42501" }, statement);
    }
  }
  await assert.rejects(
    log.db.query("update audit_entry set sequence = null, hash = null, signature = null"),
    {
      code: "42501",
    },
  );
  assert.deepEqual((await verifyChain(log.db, log.keys, CHAIN, [])).findings, []);
});

test("two open transactions of one account both write, without waiting, and a late commit gets a later place", async () => {
  const opened = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const early = log.db.transaction(async (tx) => {
    await recordAudit(tx, log.keys, eventOf(CHAIN, 1));
    opened.resolve();
    await release.promise;
  });
  await opened.promise;
  // With the first one still open: were it in the way, this would wait forever.
  await log.db.transaction(async (tx) => {
    await tx.query("set local lock_timeout = '1s'");
    await recordAudit(tx, log.keys, eventOf(CHAIN, 2));
  });
  assert.equal(await closeAudit(log.services()), 1);
  release.resolve();
  await early;
  assert.equal(await closeAudit(log.services()), 1);
  const rows = await log.db.query<{ runId: string }>(
    `select run_id as "runId" from audit_entry order by sequence`,
  );
  assert.deepEqual(
    rows.map(({ runId }) => runId),
    ["run_2", "run_1"],
  );
  assert.deepEqual((await verifyChain(log.db, log.keys, CHAIN, [])).findings, []);
});

test("a writer does not wait for a closer that hangs", async () => {
  await writeEntries(log, CHAIN, 1);
  await closeAudit(log.services());
  await log.db.transaction(async (tx) => {
    await tx.query("select 1 from audit_chain where chain = $1 for update", [CHAIN]);
    await log.db.transaction(async (other) => {
      await other.query("set local lock_timeout = '1s'");
      await recordAudit(other, log.keys, eventOf(CHAIN, 2));
    });
    // Nor does another closer: it leaves the chain to the one that has it.
    assert.equal(await closeAudit(log.services()), 0);
  });
  assert.equal(await closeAudit(log.services()), 1);
});

test("closers that race with writers and with each other give every entry one place", async () => {
  const pools = [0, 1, 2].map(() =>
    openPool({ connectionString: log.connectionString }, { applicationName: "latchkey-test", max: 3 }),
  );
  const accounts = [CHAIN, "acct_other", null];
  let writing = true;
  const closers = pools.map(async (db) => {
    let closed = 0;
    while (writing) closed += await closeAudit(log.services(db));
    return closed;
  });
  await Promise.all(accounts.map(async (account) => await writeEntries(log, account, 200)));
  writing = false;
  const closed = await Promise.all(closers);
  await closeAudit(log.services());
  assert.ok(
    closed.filter((count) => count > 0).length > 1,
    `more than one closer has worked: ${closed.join(", ")}`,
  );
  for (const account of accounts) {
    const verified = await verifyChain(log.db, log.keys, account ?? "installation", []);
    assert.deepEqual([verified.entries, verified.open, verified.findings], [200, 0, []]);
  }
  await Promise.all(pools.map(async (db) => await db.end()));
});

test("an entry that waits for long is reported, as waiting", async () => {
  await recordAudit(
    log.db,
    log.keys,
    eventOf(CHAIN, 1),
    new Date(Date.now() - limits.auditOverdueMs - 1_000).toISOString(),
  );
  const before = await verifyChain(log.db, log.keys, CHAIN, []);
  assert.deepEqual(
    before.findings.map(({ fault }) => fault),
    ["unchained"],
  );
  await closeAudit(log.services());
  assert.deepEqual((await verifyChain(log.db, log.keys, CHAIN, [])).findings, []);
});

test("checkpoints: a line for each chain that has grown, signed; foreign and changed lines are told by their number", async () => {
  const file = join(folder, "checkpoints.ndjson");
  const checkpoints = new AuditCheckpoints(log.services(), openAppendLog(file));
  assert.equal(await checkpoints.write(), 0);
  await writeEntries(log, CHAIN, 3);
  await writeEntries(log, null, 1);
  await closeAudit(log.services());
  assert.equal(await checkpoints.write(), 2);
  assert.equal(await checkpoints.write(), 0);
  // Another process on the same folder reads what is there.
  assert.equal(await new AuditCheckpoints(log.services(), openAppendLog(file)).write(), 0);
  await writeEntries(log, CHAIN, 1);
  await closeAudit(log.services());
  assert.equal(await checkpoints.write(), 1);
  const lines = readFileSync(file, "utf8").trim().split("\n");
  assert.equal(lines.length, 3);
  appendFileSync(file, `${lines[0]?.replace('"count":3', '"count":4')}\n`);
  appendFileSync(file, `{"v":1,"chain":"${CHAIN}"}\n`);
  appendFileSync(file, `{"v":1,"at":"2026-11-21T00:00:00.000Z","signature":"AAAA"}\n`);
  const { chains, foreignCheckpoints } = await verifyAudit(log.db, log.keys, {
    account: null,
    checkpointFiles: [file],
  });
  assert.deepEqual(foreignCheckpoints, [`${file}:4`, `${file}:5`, `${file}:6`]);
  assert.deepEqual(
    chains.map(({ account, entries, findings }) => [account, entries, findings]),
    [
      [null, 1, []],
      [CHAIN, 4, []],
    ],
  );
});

test("checkpoints: a chain that is shorter than it was gets no new one", async () => {
  const file = join(folder, "shorter.ndjson");
  const sink = openAppendLog(file);
  await writeEntries(log, CHAIN, 3);
  await closeAudit(log.services());
  await new AuditCheckpoints(log.services(), sink).write();
  const [end] = await listChainEnds(log.db);
  await log.db.query("update audit_chain set count = 2, head = $1", [end?.head]);
  assert.equal(await new AuditCheckpoints(log.services(), sink).write(), 0);
  assert.equal((await readCheckpoints(log.keys, file)).length, 1);
});

// docs/decisions/0023: a file that can't be written is an alarm.
test("checkpoints: what could not be written is written the next time", async () => {
  const sinkFolder = join(folder, "sink");
  const sink = openAppendLog(join(sinkFolder, "checkpoints.ndjson"));
  const checkpoints = new AuditCheckpoints(log.services(), sink);
  await writeEntries(log, CHAIN, 3);
  await closeAudit(log.services());
  await assert.rejects(checkpoints.write(), { code: "ENOENT" });
  mkdirSync(sinkFolder);
  assert.equal(await checkpoints.write(), 1);
});

test("a line that a crash has cut off spoils no other", async () => {
  const file = join(folder, "torn.ndjson");
  const sink = openAppendLog(file);
  await sink.append([`{"n":1}`]);
  appendFileSync(file, `{"n":2,"to`);
  await Promise.all([sink.append([`{"n":3}`, `{"n":4}`]), openAppendLog(file).append([`{"n":5}`])]);
  const { lines, unreadable } = await readLog(file);
  assert.deepEqual(new Set(lines.map(({ value }) => value["n"])), new Set([1, 3, 4, 5]));
  assert.equal(unreadable, 1);
});

// docs/decisions/0023: unusually many openings are an alarm.
test("openings far above those of the hour before are unusual; a steady stream is not", async () => {
  const { floor } = limits.unusualOpenings;
  const now = Date.now();
  const opened = async (account: string, count: number, agoMs: number): Promise<void> => {
    for (let index = 0; index < count; index++)
      await recordAudit(log.db, log.keys, eventOf(account, index), new Date(now - agoMs).toISOString());
  };
  await opened(CHAIN, floor, 1_000);
  await opened("acct_other", floor, 1_000);
  // An hour with six openings a minute: sixty in one is not more than ten times as many.
  await opened("acct_other", 360, 30 * 60_000);
  assert.deepEqual(await listUnusualOpenings(log.db, limits.unusualOpenings), [
    { accountId: CHAIN, lastMinute: floor, perMinute: 0 },
  ]);
});

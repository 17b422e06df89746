// docs/decisions/0042: a closed month is exported, signed and detached, and each chain still verifies from its first entry to its last.
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { closeAudit } from "#actions/audit/close-audit.ts";
import { detachMonth, planDetaching } from "#actions/audit/detach-month.ts";
import { exportAudit } from "#actions/audit/export-audit.ts";
import { exportMonth } from "#actions/audit/export-month.ts";
import { verifyAudit, verifyChain, verifyPart } from "#actions/audit/verify-audit.ts";
import { verifyMonthFile } from "#actions/audit/verify-month-file.ts";
import { findChainEnd, listChains, recordAudit } from "#db/audit-entries.ts";
import { readClockText } from "#db/connection/clock.ts";
import type { Database } from "#db/connection/pool.ts";
import { isInstallationChainCut } from "#db/signing/first-signing.ts";
import { must } from "#lib/assert.ts";
import { openAuditVerifier } from "#lib/audit-keys.ts";
import { generateSigningKey, openSigning, readSigningKey } from "#lib/signing.ts";
import { asSuperuser, eventOf, openAuditLog, writeEntries, type AuditLog } from "./audit-log.ts";
import { checkExport } from "./offline.ts";

const [ACME, OTHER] = ["acct_acme", "acct_other"];

let log: AuditLog;
let folder: string;

/** Two accounts and the installation, from July 2020 on. One entry of July gets its number after the first one of August. */
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "latchkey-months-"));
  log = await openAuditLog(ACME, OTHER);
  await write(ACME, 3, "2020-07-31T23:59:59.999Z");
  await write(null, 2, "2020-07-02T00:00:00.000Z");
  await write(ACME, 4, "2020-08-01T00:00:00.000Z");
  await write(ACME, 1, "2020-07-31T23:59:59.999Z");
  await write(OTHER, 2, "2020-08-31T23:59:59.999Z");
  await recordAudit(
    log.db,
    log.keys,
    { ...eventOf(ACME, 0), action: "config.apply", detail: { row: "account/acme", serial: 7 } },
    "2020-08-20T00:00:00.000Z",
  );
  await closeAudit(log.services());
  await write(ACME, 4, "2020-09-01T00:00:00.000Z");
  await writeEntries(log, ACME, 1);
  await closeAudit(log.services());
});
after(async () => {
  await log?.drop();
  rmSync(folder, { recursive: true, force: true });
});

async function write(account: string | null, count: number, at: string): Promise<void> {
  for (let index = 0; index < count; index++)
    await recordAudit(log.db, log.keys, eventOf(account, index), at);
  await closeAudit(log.services());
}

const withoutTriggers = async (statement: string): Promise<void> =>
  await log.db.transaction(async (tx) => {
    await tx.query("set local session_replication_role = replica");
    await tx.query(statement);
  });

const fileOf = (month: string): string => join(folder, `${month}.ndjson`);
const linesOf = (file: string): any[] =>
  readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
const exported = async (month: string) => await exportMonth(log.db, log.keys, { month, file: fileOf(month) });
const countEntries = async (): Promise<unknown> =>
  (await log.db.query("select count(*) from audit_entry"))[0];

test("a month is exported only when it is over and all of its entries have their numbers, into a new file", async () => {
  const now = await readClockText(log.db);
  const refused: Readonly<Record<string, RegExp>> = {
    "2020-13": /is not a month/,
    "August 2020": /is not a month/,
    [now.slice(0, 7)]: /is not over/,
    "2100-01": /is not over/,
    "2019-12": /has no entries of 2019-12/,
  };
  for (const [month, why] of Object.entries(refused)) await assert.rejects(exported(month), why);
  await recordAudit(log.db, log.keys, eventOf(OTHER, 0), "2020-08-31T23:59:59.999Z");
  await assert.rejects(exported("2020-08"), /do not have their numbers yet\. Start a worker/);
  await closeAudit(log.services());
  writeFileSync(fileOf("2020-08"), "");
  await assert.rejects(exported("2020-08"), /already exists/);
  rmSync(fileOf("2020-08"));
  await assert.rejects(
    exportMonth(log.db, log.keys, { month: "2020-08", file: join(folder, "none/file") }),
    /\(ENOENT\)\. Check the folder/,
  );
  assert.deepEqual([existsSync(fileOf("2020-08")), existsSync(`${fileOf("2020-08")}.part`)], [false, false]);
});

test("the file has the month of every chain, late entries with the next month, and an auditor needs only the public key", async () => {
  assert.partialDeepStrictEqual(await exported("2020-07"), { month: "2020-07", chains: 2, entries: 5 });
  const august = await exported("2020-08");
  assert.partialDeepStrictEqual(august, { month: "2020-08", chains: 2, entries: 4 + 1 + 1 + 3 });
  for (const month of ["2020-07", "2020-08"])
    assert.deepEqual(checkExport(linesOf(fileOf(month)), log.keys.publicKey), []);
  const verified = await verifyMonthFile(fileOf("2020-08"), openAuditVerifier(log.keys.publicKey));
  assert.partialDeepStrictEqual(verified, august);
  assert.deepEqual(
    verified.slices.map(({ chain, first, last }) => [chain, first, last]),
    [
      [ACME, 4, 9],
      [OTHER, 1, 3],
    ],
  );
});

test("a changed, cut or extended file, another key's, and none at all are refused by the line", async () => {
  const file = join(folder, "changed.ndjson");
  const whole = readFileSync(fileOf("2020-08"));
  const verify = async (bytes: Uint8Array, keys = openAuditVerifier(log.keys.publicKey)) => {
    writeFileSync(file, bytes);
    return await verifyMonthFile(file, keys);
  };
  for (let round = 0; round < 100; round++) {
    const changed = Buffer.from(whole);
    const at = randomInt(changed.length - 1);
    changed[at] = must(changed[at], "a byte") ^ (1 << randomInt(8));
    await assert.rejects(verify(changed), /changed\.ndjson.*The file was changed/s, `byte ${at}`);
  }
  const lines = whole.toString("utf8").trimEnd().split("\n");
  const without = (at: number): Buffer => Buffer.from(lines.toSpliced(at, 1).join("\n"));
  for (const at of lines.keys())
    await assert.rejects(verify(without(at)), /The file was changed/, `line ${at}`);
  await assert.rejects(verify(Buffer.concat([whole, Buffer.from("{}\n")])), /comes after the signature/);
  await assert.rejects(verify(Buffer.alloc(0)), /ends before the line with its signature/);
  const foreign = openSigning(readSigningKey(generateSigningKey())).audit;
  await assert.rejects(verify(whole, foreign), /is not signed with the key/);
  await assert.rejects(
    verifyMonthFile(join(folder, "none.ndjson"), foreign),
    /none\.ndjson can't be read \(ENOENT\)/,
  );
});

test("a month with a wrong entry is not exported, and not detached by a file from before", async () => {
  const other = join(folder, "tampered.ndjson");
  const fifth = `where chain = '${ACME}' and sequence = 5`;
  await withoutTriggers(`update audit_entry set detail = detail || ' ' ${fifth}`);
  await assert.rejects(
    exportMonth(log.db, log.keys, { month: "2020-08", file: other }),
    /acct_acme: entry 5 .*tampered with: run `latchkey audit verify`/,
  );
  await withoutTriggers(`update audit_entry set detail = rtrim(detail) ${fifth}`);
  assert.equal(existsSync(other), false);
  await asSuperuser(log, async (tx) => {
    await tx.query(`update audit_entry set hash = sha256(hash) where chain = $1 and sequence = 3`, [ACME]);
    await assert.rejects(
      planDetaching(tx, log.keys, { month: "2020-07", file: fileOf("2020-07") }),
      /does not have the same entries of 2020-07 as the database/,
    );
  });
});

test("detaching needs the month's own, whole file, and the earlier months first; refused, it changes nothing", async () => {
  const before = await countEntries();
  const detach = async (month: string, file: string): Promise<unknown> =>
    await detachMonth(log.db, log.keys, { month, file });
  await assert.rejects(detach("2020-08", fileOf("2020-07")), /has the entries of 2020-07, not of 2020-08/);
  await assert.rejects(detach("2020-08", fileOf("2020-08")), /Entries before 2020-08 of acct_acme/);
  const changed = join(folder, "july.ndjson");
  writeFileSync(changed, readFileSync(fileOf("2020-07"), "utf8").replace("run_1", "run_2"));
  await assert.rejects(detach("2020-07", changed), /july\.ndjson, line \d+: .*The file was changed/);
  await assert.rejects(detach("2020-07", join(folder, "none.ndjson")), /can't be read/);
  assert.deepEqual(await countEntries(), before);
  await assert.rejects(
    log.db.query("delete from audit_entry where occurred_at < '2020-08-01'"),
    { code: "42501" },
    "only what was detached can be deleted",
  );
});

/** What verify says of a chain. */
const look = async (db: Database, chain: string) => {
  const { entries, exported: months, findings } = await verifyChain(db, log.keys, chain, []);
  return { entries, months, faults: findings.map(({ fault, sequence }) => [fault, sequence]) };
};

test("detached months leave a head behind: chains verify from there on, in one go, in parts, and as an export", async () => {
  const end = must(await findChainEnd(log.db, ACME), "the chain's end");
  const july = { month: "2020-07", file: fileOf("2020-07") };
  assert.partialDeepStrictEqual(await detachMonth(log.db, log.keys, july), {
    chains: 2,
    removed: 5,
    kept: 0,
  });
  await closeAudit(log.services());
  await assert.rejects(detachMonth(log.db, log.keys, july), /The entries of 2020-07 were detached before/);
  await assert.rejects(exported("2020-07"), /already exists/);
  const august = { month: "2020-08", file: fileOf("2020-08") };
  assert.partialDeepStrictEqual(await detachMonth(log.db, log.keys, august), {
    chains: 2,
    removed: 8,
    kept: 1,
  });
  await closeAudit(log.services());

  assert.deepEqual(await findChainEnd(log.db, ACME), end);
  assert.deepEqual(await look(log.db, ACME), { entries: 6, months: ["2020-07", "2020-08"], faults: [] });
  assert.deepEqual(await look(log.db, OTHER), { entries: 0, months: ["2020-08"], faults: [] });
  // Two entries say what was detached.
  assert.deepEqual(await look(log.db, "installation"), { entries: 2, months: ["2020-07"], faults: [] });
  const detail = await log.db.query(
    "select subject_id as month, detail::json ->> 'sha256' as sha256 from audit_entry where action = 'audit.detach' order by id",
  );
  assert.deepEqual(
    detail,
    [july, august].map(({ month, file }) => ({ month, sha256: linesOf(file).at(-1).sha256 })),
  );
  const part = await verifyPart(log.db, log.keys, ACME, null, 3);
  assert.deepEqual([part.checked, part.next?.sequence, part.findings], [3, 12, []]);
  const rest = await verifyPart(log.db, log.keys, ACME, part.next, 3);
  assert.deepEqual([rest.checked, rest.next, rest.findings], [2, null, []]);
  const lines = [];
  for await (const line of exportAudit(log.db, log.keys, { account: null, since: null })) lines.push(line);
  assert.deepEqual(checkExport(lines, log.keys.publicKey), []);
  assert.equal(lines.filter(({ sequence }) => sequence !== undefined).length, 5 + 2);
  assert.deepEqual(
    (await listChains(log.db)).map(({ chain, exportedBefore }) => [chain, exportedBefore]),
    [
      ["installation", "2020-08-01"],
      [ACME, "2020-09-01"],
      [OTHER, "2020-09-01"],
    ],
  );
});

test("the chains go on, and a late entry of a detached month belongs to the next one", async () => {
  await write(OTHER, 1, "2020-08-31T23:59:59.999Z");
  await writeEntries(log, OTHER, 2);
  await closeAudit(log.services());
  assert.deepEqual(await look(log.db, OTHER), { entries: 3, months: ["2020-08"], faults: [] });
  const { chains } = await verifyAudit(log.db, log.keys, { account: null, checkpointFiles: [] });
  assert.deepEqual(
    chains.flatMap(({ findings }) => findings),
    [],
  );
  assert.partialDeepStrictEqual(await exported("2020-09"), { chains: 2, entries: 4 + 1 });
});

const TAMPERED: Readonly<Record<string, readonly [string, string, number]>> = {
  "the mark of the last month is deleted": [
    `delete from audit_month where month = '2020-08-01'`,
    "missing",
    4,
  ],
  "all marks are deleted": ["delete from audit_month", "missing", 1],
  "a mark is moved to hide more entries": [
    `update audit_month set last = 11 where month = '2020-08-01' and chain = '${ACME}'`,
    "missing",
    4,
  ],
  "a mark names another file": [
    `update audit_month set file_sha256 = sha256(file_sha256) where month = '2020-08-01'`,
    "missing",
    4,
  ],
  "the first mark is deleted": [`delete from audit_month where month = '2020-07-01'`, "missing", 1],
  "the entry that a signed row needs is deleted": [
    `delete from audit_entry where action = 'config.apply'`,
    "missing",
    4,
  ],
  "it is changed": [`update audit_entry set detail = '{}' where action = 'config.apply'`, "changed", 9],
  "the first entry after the months is deleted": [
    `delete from audit_entry where chain = '${ACME}' and sequence = 10`,
    "missing",
    10,
  ],
};

test("a chain whose beginning was detached is not taken for one that was cut", async () => {
  assert.equal(await isInstallationChainCut(log.db), false);
  for (const statement of [
    "delete from audit_month where chain = 'installation'",
    "delete from audit_entry where chain = 'installation' and sequence = 3",
  ])
    await asSuperuser(log, async (tx) => {
      await tx.query(statement);
      assert.equal(await isInstallationChainCut(tx), true, statement);
    });
});

for (const [what, [statement, fault, sequence]] of Object.entries(TAMPERED))
  test(`tampering with what is left is found: ${what}`, async () => {
    await asSuperuser(log, async (tx) => {
      await tx.query(statement);
      assert.deepEqual((await look(tx, ACME)).faults, [[fault, sequence]]);
    });
  });

test("a checkpoint of the last detached entry must agree with what is left", async () => {
  const at = "2020-09-01T00:00:00.000Z";
  const checkpoint = { chain: ACME, count: 9, head: "00".repeat(32), at };
  const { findings } = await verifyChain(log.db, log.keys, ACME, [checkpoint]);
  assert.deepEqual(
    findings.map(({ fault, sequence }) => [fault, sequence]),
    [["truncated", 9]],
  );
});

test("so says the check in parts, which the dashboard shows", async () => {
  await withoutTriggers("delete from audit_entry where action = 'config.apply'");
  const { next, findings } = await verifyPart(log.db, log.keys, ACME, null, 3);
  assert.deepEqual(
    [next, findings.map(({ fault, sequence }) => [fault, sequence])],
    [null, [["missing", 4]]],
  );
});

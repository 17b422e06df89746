// docs/decisions/0042: an installation that has one of everything, and whose months are outside of its database, is in order in every respect.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { closeAudit } from "#actions/audit/close-audit.ts";
import { readClockText } from "#db/connection/clock.ts";
import { openLog } from "#lib/log.ts";
import { assertSameRows, openElsewhere, readAllRows } from "../backups/stage.ts";
import { latchkeyProcess, runCommand } from "../cli/program.ts";
import { moveClock } from "../clock.ts";
import type { Bench } from "../documents/bench.ts";
import { assertInvariants, signingOf } from "../invariants.ts";
import { openWorkload, work } from "../invariants/workload.ts";

let bench: Bench;
let detach: readonly string[];
let month: string;

before(async () => {
  bench = await openWorkload();
  await work(bench);
  await bench.service.end();
  const { installation } = bench;
  const { db } = installation.database;
  const log = openLog({ level: "silent", format: "json" });
  await closeAudit({ db, audit: signingOf(installation).audit, log });
  month = (await readClockText(db)).slice(0, 7);
  // The month is over.
  await moveClock(db, "40 days");
  const file = join(installation.dataFolder, "month.ndjson");
  await runCommand(installation, 0, ["audit", "export", "--month", month, "--out", file]);
  detach = ["audit", "detach", "--month", month, "--file", file, "--yes"];
});
after(async () => await bench?.[Symbol.asyncDispose]());

const count = async (): Promise<number> =>
  (await bench.installation.database.db.query<{ count: number }>("select count(*)::int from audit_entry"))[0]
    ?.count ?? 0;

test("killed half-way, nothing is removed; again, all of it is, and no check misses an entry", async () => {
  const { installation } = bench;
  const before = await count();
  const killed = await latchkeyProcess(detach, {
    ...installation.environment,
    LATCHKEY_FAILPOINTS: "audit.after_detach_batch=kill",
  });
  assert.equal(killed.signal, "SIGKILL", killed.stderr);
  assert.equal(await count(), before);
  assert.deepEqual(await installation.database.db.query("select from audit_month"), []);
  await runCommand(installation, 0, detach);
  assert.ok((await count()) < before);
  await assertInvariants(installation);
});

test("a backup has what is left, and its restore verifies and goes on", async () => {
  const { installation } = bench;
  const rows = await readAllRows(installation.database.db);
  assert.ok((rows.get("audit_month") ?? []).length > 1, "chains of accounts, and of the installation");
  const file = join(installation.dataFolder, "monday.latchkey");
  await runCommand(installation, 0, ["backup", file]);
  await using elsewhere = await openElsewhere(installation);
  await runCommand(elsewhere, 0, ["restore", file]);
  await assertSameRows(rows, elsewhere.database.db);
  const { stdout } = await runCommand(elsewhere, 0, ["audit", "verify"]);
  assert.ok(stdout.includes(`in exported files: ${month}`));
});

// docs/audit.md#months: the commands for a month of the audit log that is over.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { closeAudit } from "#actions/audit/close-audit.ts";
import { recordAudit } from "#db/audit-entries.ts";
import { readClockText } from "#db/connection/clock.ts";
import { openLog } from "#lib/log.ts";
import { eventOf } from "../audit/audit-log.ts";
import { moveClock } from "../clock.ts";
import { signingOf } from "../invariants.ts";
import { install, type Installation } from "../service.ts";
import { latchkey, runCommand } from "./program.ts";

let installation: Installation & AsyncDisposable;
let month: string;
let file: string;
let entries: number;

/** Entries of this month, which is over by the service's time. */
before(async () => {
  installation = await install();
  const { db } = installation.database;
  const { audit } = signingOf(installation);
  for (let index = 0; index < 3; index++) await recordAudit(db, audit, eventOf(null, index));
  entries = await closeAudit({ db, audit, log: openLog({ level: "silent", format: "json" }) });
  month = (await readClockText(db)).slice(0, 7);
  file = join(installation.dataFolder, `${month}.ndjson`);
  await moveClock(db, "40 days");
});
after(async () => await installation?.[Symbol.asyncDispose]());

const run = async (exitCode: number, ...words: readonly string[]) =>
  await runCommand(installation, exitCode, ["audit", ...words]);

test("a month is exported into a file, which verifies without the database and without the keys", async () => {
  for (const wrong of [
    ["--month", month],
    ["--out", file],
    ["--month", month, "--out", file, "--account", "acme"],
  ])
    assert.match((await run(2, "export", ...wrong)).stderr, /A month is exported whole/);
  const written = await run(0, "export", "--month", month, "--out", file, "--json");
  const { sha256, ...counts } = JSON.parse(written.stdout) as Record<string, unknown>;
  assert.deepEqual(counts, { file, month, chains: 1, entries });
  assert.equal(
    (await run(0, "verify", file)).stdout,
    `${file}: ${month}, ${entries} entries of 1 chains verified\n`,
  );
  const { publicKey } = signingOf(installation).audit;
  // Where there is no installation.
  const offline = await latchkey(["audit", "verify", file, "--public-key", publicKey, "--json"], {});
  assert.equal(offline.code, 0, offline.stderr);
  assert.deepEqual(JSON.parse(offline.stdout), { month, chains: 1, entries, sha256 });
  assert.match((await run(2, "verify", file, "--public-key", "short")).stderr, /must be the 43 characters/);
  assert.match((await run(2, "verify", "--public-key", publicKey)).stderr, /--public-key is for a file/);
  assert.match((await run(2, "verify", file, "--account", "acme")).stderr, /are for the database/);
});

test("detaching first says what it would do; then the database says which months are outside", async () => {
  const options = ["detach", "--month", month, "--file", file];
  const plan = await run(1, ...options);
  assert.ok(
    plan.stderr.includes(
      `${entries} entries of 1 chains would be removed from the database; nothing was changed`,
    ),
  );
  assert.equal((await run(0, "verify")).stdout, `installation: ${entries} entries verified\n`);
  const done = await run(0, ...options, "--yes");
  const [, removed, kept] =
    /^Removed (\d+) entries .* (\d+) entries that signed rows need/.exec(done.stdout) ?? [];
  assert.equal(Number(removed) + Number(kept), entries);
  assert.ok(Number(removed) >= 3);
  const now = await run(0, "verify");
  assert.equal(
    now.stdout,
    `installation: ${kept} entries verified, 1 not chained yet; in exported files: ${month}\n`,
  );
  assert.match((await run(1, ...options, "--yes")).stderr, /were detached before/);
});

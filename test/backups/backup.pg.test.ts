// docs/decisions/0039: what was acknowledged before a backup's moment is there after its restore and opens; anything else is refused whole.
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { must } from "#lib/assert.ts";
import { generateMasterKey } from "#vault/master-key.ts";
import { generateSigningKey } from "#lib/signing.ts";
import type { Database } from "#db/connection/pool.ts";
import { connect, openCaller } from "../caller.ts";
import type { Bench } from "../documents/bench.ts";
import { expectHeldJson } from "../cli/held-surface.ts";
import { assertInvariants } from "../invariants.ts";
import { openWorkload, work, type Left } from "../invariants/workload.ts";
import { assertSameRows, assertUntouched, openElsewhere, readAllRows, type Elsewhere } from "./stage.ts";

let bench: Bench;
let left: Left;
let file: string;
let rows: ReadonlyMap<string, readonly string[]>;
let said: { stdout: string; stderr: string };

/** All of these are about one backup of an installation that has one of everything. */
before(async () => {
  bench = await openWorkload();
  const { installation } = bench;
  left = await work(bench);
  await bench.service.end();
  file = join(installation.dataFolder, "monday.latchkey");
  rows = await readAllRows(installation.database.db);
  const backup = await installation.command("backup", file);
  assert.equal(backup.code, 0, backup.stderr);
  said = backup;
});

after(async () => await bench?.[Symbol.asyncDispose]());

const restoreInto = async (elsewhere: Elsewhere, ...options: string[]) =>
  await elsewhere.command("restore", file, ...options);

const listIndexes = async (db: Database): Promise<readonly unknown[]> =>
  await db.query("select indexdef from pg_indexes where schemaname = 'public' order by indexname");

/** Refused, with a sentence that says why, and nothing is written. */
async function assertRefused(
  why: RegExp,
  change: (elsewhere: Elsewhere) => Promise<string> | string,
): Promise<void> {
  await using elsewhere = await openElsewhere(bench.installation);
  const given = await change(elsewhere);
  const { code, stdout, stderr } = await elsewhere.command("restore", given);
  assert.equal(code, 1, stdout);
  assert.match(stderr, why);
  assert.match(stderr, /Nothing was written/);
  await assertUntouched(elsewhere);
}

test("every row is there again, every object, every credential opens, and runs go on", async () => {
  await using elsewhere = await openElsewhere(bench.installation);
  const check = await restoreInto(elsewhere, "--check");
  assert.match(check.stdout, /is whole, and the keys at hand open it: \d+ rows and [1-9]\d* objects/);
  await assertUntouched(elsewhere);

  const { code, stdout, stderr } = await restoreInto(elsewhere);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^Restored \d+ rows and [1-9]\d* objects as of 20/m);
  assert.match(stderr, /No tombstones/);
  await assertSameRows(rows, elsewhere.database.db);
  assert.deepEqual(
    await listIndexes(elsewhere.database.db),
    await listIndexes(bench.installation.database.db),
  );
  await assertInvariants(elsewhere);
  const doctor = await elsewhere.command("doctor", "--deep");
  assert.equal(doctor.code, 0, doctor.stdout);
  assert.match(doctor.stdout, /opens all [1-9]\d* credentials/);
  const audit = await elsewhere.command("audit", "verify");
  assert.equal(audit.code, 0, audit.stdout + audit.stderr);

  const service = await bench.installation.serve(elsewhere.environment);
  const caller = openCaller(service.url, bench.key);
  const results = await caller.get(`/blueprint-runs/${left.completed}/results?deliveryMethod=direct`);
  assert.match(results.text, /"number":"n0"/);
  assert.equal(
    (await caller.get(`/blueprint-runs/${left.parked}/status`)).body.progress_step,
    "awaiting_review",
  );
  const again = new FormData();
  again.set("credential_id", left.credential);
  again.set("file", new Blob(["a,b\n1,2\n"], { type: "text/csv" }), "a.csv");
  const { body: run } = await caller.post("/blueprints/reads/trigger", again);
  assert.equal((await caller.waitForRun(run.id)).body.status, "completed");
  await service.end();

  const twice = await restoreInto(elsewhere);
  assert.equal(twice.code, 1);
  assert.match(twice.stderr, /object store belongs to an installation/);
  const full = await restoreInto(elsewhere, "--adopt-store");
  assert.match(full.stderr, /The database is not empty: its table \w+ has rows/);
});

test("what the file needs is said, and no key and no plain value is in it", async () => {
  const { dataFolder, database } = bench.installation;
  const kids = (await database.db.query<{ kid: string }>("select kid from vault_key")).map(({ kid }) => kid);
  for (const kid of kids) assert.ok(said.stdout.includes(kid));
  assert.match(said.stdout, /None of them is in the file/);
  const bytes = readFileSync(file);
  const { keys } = JSON.parse(readFileSync(join(dataFolder, "master.key"), "utf8")) as {
    keys: { d: string }[];
  };
  for (const secret of [...keys.map(({ d }) => d), "canary-of-the-doctor", "strat_it", "Acme", "lks_"])
    assert.equal(bytes.includes(secret), false, "found in the file");
  assert.equal(existsSync(`${file}.part`), false);
});

test("doctor knows the last backup, and the audit log has it", async () => {
  const { stdout } = await bench.installation.command("doctor");
  assert.match(stdout, /^ok +the last backup has \d+ rows and \d+ objects as of 20/m);
  const [entry] = await bench.installation.database.db.query<{ detail: string }>(
    "select detail from audit_entry where action = 'backup.create'",
  );
  const { rows: counted, missing } = JSON.parse(must(entry, "an entry").detail) as Record<string, number>;
  // The list of migrations is made by a restore itself.
  const total = [...rows].reduce(
    (sum, [name, each]) => sum + (name === "schema_migration" ? 0 : each.length),
    0,
  );
  assert.equal(counted, total);
  assert.equal(missing, 0);
});

test("a file that was cut off or changed is refused, and one that is none", async () => {
  const whole = readFileSync(file);
  const changed = async (name: string, bytes: Buffer): Promise<string> => {
    const path = join(bench.installation.dataFolder, name);
    writeFileSync(path, bytes);
    return path;
  };
  const flip = (at: number): Buffer => {
    const bytes = Buffer.from(whole);
    bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
    return bytes;
  };
  const head = whole.indexOf("\n");
  for (const at of [head + 1, Math.floor((head + whole.length) / 2), whole.length - 1])
    await assertRefused(
      /cut off or changed after it was made/,
      async () => await changed("flipped", flip(at)),
    );
  await assertRefused(/can't be restored/, async () => await changed("flipped", flip(head - 20)));
  for (const length of [whole.length - 1, Math.floor(whole.length / 2), head + 1])
    await assertRefused(/cut off or changed/, async () => await changed("cut", whole.subarray(0, length)));
  await assertRefused(/can't be restored/, async () => await changed("cut", whole.subarray(0, head)));
  await assertRefused(
    /cut off or changed/,
    async () => await changed("longer", Buffer.concat([whole, Buffer.from("x")])),
  );
  await assertRefused(/can't be restored/, async () => await changed("other", Buffer.from("PGDMP\nrows")));
  await assertRefused(/There is no file/, () => join(bench.installation.dataFolder, "nowhere"));
  const [line = ""] = whole.toString("latin1").split("\n", 1);
  const newer = JSON.parse(line) as { about: { version: number; latchkey: string } };
  newer.about = { ...newer.about, version: 2, latchkey: "9.9.9" };
  await assertRefused(
    /newer version of Latchkey \(9\.9\.9\)/,
    async () =>
      await changed("newer", Buffer.concat([Buffer.from(JSON.stringify(newer)), whole.subarray(head)])),
  );
});

test("other keys are refused by their ids", async () => {
  const kid = must(/"kid":"([^"]+)"/.exec(readFileSync(file, "latin1")), "a kid")[1] ?? "";
  const other = generateMasterKey();
  await assertRefused(
    new RegExp(`sealed to the key ${kid}, and .* has only ${other.kid}`),
    ({ dataFolder }) => {
      writeFileSync(join(dataFolder, "master.key"), other.fileText, { mode: 0o600 });
      return file;
    },
  );
  await assertRefused(/another signing key/, ({ dataFolder }) => {
    writeFileSync(join(dataFolder, "signing.key"), `${generateSigningKey()}\n`, { mode: 0o600 });
    return file;
  });
  await using bare = await openElsewhere(bench.installation, ["signing.key"]);
  const { code, stderr } = await restoreInto(bare);
  assert.equal(code, 1);
  assert.match(stderr, /There is no master key: put the one of the backup's installation into/);
});

test("a migration that this program does not have is refused", async () => {
  const { db } = bench.installation.database;
  const later = join(bench.installation.dataFolder, "later.latchkey");
  await db.query("insert into schema_migration (version, name, sha256) values (9999, '9999_later', 'x')");
  try {
    const { createBackup } = await import("#actions/backups/create-backup.ts");
    const { openLocalStore } = await import("#blobs/local-store.ts");
    const { signingOf } = await import("../invariants.ts");
    const { listVaultKeys } = await import("#db/credentials/vault-keys.ts");
    const [recipient] = await listVaultKeys(db);
    await createBackup({
      db,
      blobs: openLocalStore(join(bench.installation.dataFolder, "objects")),
      signing: signingOf(bench.installation),
      recipient: must(recipient, "a key"),
      file: later,
    });
  } finally {
    await db.query("delete from schema_migration where version = 9999");
  }
  await assertRefused(/made by another version of Latchkey: .* 9999_later/, () => later);
});

test("a recipient's own key opens the file; the vault's key opens what is in it", async () => {
  const { installation } = bench;
  const [key, sealed] = ["backup.key", "tuesday.latchkey"].map((name) =>
    join(installation.dataFolder, name),
  ) as [string, string];
  assert.equal((await installation.command("backup", "--new-recipient", key)).code, 0);
  const twice = await installation.command("backup", "--new-recipient", key);
  assert.match(twice.stderr, /already exists/);
  const wrong = await installation.command("backup", "--recipient", key, sealed);
  assert.match(wrong.stderr, /is not the public key of a recipient/);
  const written = await installation.command("backup", "--recipient", `${key}.pub`, "--json", sealed);
  assert.equal(written.code, 0, written.stderr);
  expectHeldJson("backup", JSON.parse(written.stdout));
  const { kid } = JSON.parse(written.stdout) as { kid: string };
  assert.match((await installation.command("backup", sealed)).stderr, /already exists/);
  await using elsewhere = await openElsewhere(installation);
  const without = await elsewhere.command("restore", sealed);
  assert.ok(without.stderr.includes(kid), without.stderr);
  await assertUntouched(elsewhere);
  const restored = await elsewhere.command("restore", sealed, "--identity", key, "--json");
  assert.equal(restored.code, 0, restored.stderr);
  expectHeldJson("restore", JSON.parse(restored.stdout));
  assert.equal(JSON.parse(restored.stdout).restored, true);
  rmSync(sealed);
});

/** LATCHKEY_BACKUP_SECONDS=120 npm test -- backups/backup: one backup after the other for so long, of which the last one is restored. */
const BUSY_MS = Number(process.env["LATCHKEY_BACKUP_SECONDS"] ?? 0) * 1_000;
const WRITERS = 8;

/** What is stored for these runs and credentials and does not change while none is executed or used. */
const readStored = async (db: Database, ids: readonly string[]): Promise<readonly string[]> =>
  (
    await db.query<{ line: string }>(
      `select run.id || run_input::text as line from run join run_input on run_input.run_id = run.id where run.id = any($1)
       union all select credential::text from credential where id = any($1) order by 1`,
      [ids],
    )
  ).map(({ line }) => line);

test(
  "under writes, nothing acknowledged before its moment is missing, and what was deleted since stays deleted",
  { timeout: 120_000 + 4 * BUSY_MS },
  async (t) => {
    const { installation } = bench;
    const service = await installation.serve();
    const caller = openCaller(service.url, bench.key);
    const later = await connect(caller, "strat_it", { token: "token-of-later", code: "JBSWY3DPEHPK3PXP" });
    let isWriting = true;
    const acknowledged: { readonly id: string; readonly atMs: number }[] = [];
    const write = async (once: () => Promise<string>): Promise<void> => {
      for (; isWriting;) {
        const id = await once();
        acknowledged.push({ id, atMs: Date.now() });
      }
    };
    const trigger = async (): Promise<string> =>
      (await caller.post("/blueprints/gated/trigger", { rows: [{ a: 1 }] })).body.id;
    const submit = async (): Promise<string> =>
      await connect(caller, "strat_it", { token: "token-of-another", code: "JBSWY3DPEHPK3PXP" });
    const writers = [submit, ...Array.from({ length: WRITERS }, () => trigger)].map(write);
    while (acknowledged.length < 20) await new Promise((resolve) => setTimeout(resolve, 10));
    const [beganAtMs, first] = [performance.now(), acknowledged.length];
    const busy = join(installation.dataFolder, "busy.latchkey");
    let [moment, since, backups] = [0, 0, 0];
    do {
      rmSync(busy, { force: true });
      const backup = await installation.command("backup", busy, "--json");
      assert.equal(backup.code, 0, backup.stderr);
      moment = Date.parse((JSON.parse(backup.stdout) as { taken_at: string }).taken_at);
      since = acknowledged.length;
      backups += 1;
    } while (performance.now() - beganAtMs < BUSY_MS);
    const seconds = (performance.now() - beganAtMs) / 1_000;
    isWriting = false;
    await Promise.all(writers);
    const before = acknowledged.filter(({ atMs }) => atMs < moment).map(({ id }) => id);
    t.diagnostic(
      `${backups} backups beside ${((since - first) / seconds).toFixed(0)} writes a second; ${before.length} before the last one's moment`,
    );
    assert.ok(before.length >= first && since > before.length, "writes went on while the backup was made");
    assert.equal((await caller.delete(`/credentials/${later}`)).status, 204);
    await service.end();

    await using elsewhere = await openElsewhere(installation);
    const { code, stdout, stderr } = await elsewhere.command(
      "restore",
      busy,
      "--tombstones",
      join(installation.dataFolder, "tombstones.ndjson"),
    );
    assert.equal(code, 0, stderr);
    assert.match(stdout, /1 had been restored and are deleted again/);
    const { db } = elsewhere.database;
    const stored = await readStored(installation.database.db, before);
    assert.equal(stored.length, before.length);
    assert.deepEqual(await readStored(db, before), stored);
    assert.equal((await db.query("select from credential where id = $1", [later])).length, 0);
    await assertInvariants(elsewhere);
  },
);

test("no run is purged while a backup is made, and all are afterwards", async () => {
  const { db } = bench.installation.database;
  const { withoutPurges } = await import("#db/backups/snapshot.ts");
  const { purgeDueRuns, purgeRun } = await import("#db/runs/purges.ts");
  await db.query("update run set retention_ms = 0 where id = $1", [left.failed]);
  await withoutPurges(db, async () => {
    assert.deepEqual(await purgeDueRuns(db, 10), []);
    assert.equal(await db.transaction(async (tx) => await purgeRun(tx, left.completed)), "backup");
    const refused = await bench.installation.command("runs", "purge", left.completed);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /while a backup is being made/);
  });
  assert.deepEqual(
    (await purgeDueRuns(db, 10)).map(({ id }) => id),
    [left.failed],
  );
});

test("a backup that cannot be written leaves nothing behind", async () => {
  const { installation } = bench;
  const { code, stderr } = await installation.command(
    "backup",
    join(installation.dataFolder, "no", "such", "folder"),
  );
  assert.equal(code, 1);
  assert.match(stderr, /could not be written to .* \(ENOENT\)/);
});

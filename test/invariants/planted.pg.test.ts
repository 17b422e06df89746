import assert from "node:assert/strict";
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { checkRowsOf } from "#actions/upkeep/check-invariants.ts";
import { ROW_CHECKS } from "#db/invariants/invariants.ts";
import type { Database } from "#db/connection/pool.ts";
import type { InvariantFinding } from "#domain/invariants.ts";
import { must } from "#lib/assert.ts";
import type { Bench } from "../documents/bench.ts";
import { findViolations } from "../invariants.ts";
import type { Plant } from "./plants-of-accounts.ts";
import { ofEvents } from "./plants-of-events.ts";
import { ofLivePictures } from "./plants-of-live-pictures.ts";
import { plantsOf } from "./plants.ts";
import { openWorkload, work, type Left } from "./workload.ts";

// docs/decisions/0025: for every invariant that is checked, a violation in a real installation after real work, and exactly
// that finding. The service is stopped: what is planted would be repaired, or stand in its way.

let bench: Bench;
let db: Database;
let left: Left;

before(async () => {
  bench = await openWorkload();
  db = bench.installation.database.db;
  left = await work(bench);
  await bench.service.end();
});

after(async () => await bench?.[Symbol.asyncDispose]());

const objects = (...path: string[]): string => join(bench.installation.dataFolder, "objects", ...path);

const UNDO = new Error("undo");

/** A transaction, or a part of one, that is rolled back. */
async function undone(within: Database, work: (tx: Database) => Promise<void>): Promise<void> {
  await within
    .transaction(async (tx) => {
      await work(tx);
      throw UNDO;
    })
    .catch((error: unknown) => {
      if (error !== UNDO) throw error;
    });
}

async function dropConstraints(tx: Database): Promise<void> {
  await tx.query("set local session_replication_role = replica");
  for (const { table, name } of await tx.query<{ table: string; name: string }>(
    `select conrelid::regclass::text as table, conname as name from pg_constraint
     where connamespace = 'public'::regnamespace and contype = 'c'`,
  ))
    await tx.query(`alter table ${table} drop constraint "${name}"`);
}

/** Plants and looks, and leaves nothing of it. */
async function plant(within: Database, { sql }: Plant): Promise<readonly InvariantFinding[]> {
  let found: readonly InvariantFinding[] = [];
  await undone(within, async (tx) => {
    for (const statement of sql) await tx.query(statement);
    found = await checkRowsOf(tx);
  });
  return found;
}

/** Checks for which a row is planted that is nearly as bad, and that find nothing of it. */
const ALONE: ReadonlySet<string> = new Set(["run_unpurged"]);

test("every check of rows finds the violation that is planted for it, and no other does", async (t) => {
  const plants = [...plantsOf(left), ...ofEvents(left), ...ofLivePictures(left)];
  // Past every constraint; dropped once for all plants, which takes longer than to look.
  await undone(db, async (unguarded) => {
    await dropConstraints(unguarded);
    assert.deepEqual(await plant(unguarded, { check: "", place: "", sql: [] }), [], "healthy before");
    for (const each of plants) {
      await t.test(`${each.check}: ${each.place}`, async () => {
        const found = await plant(unguarded, each);
        const told = found.map(({ check, place }) => `${check}: ${place}`);
        assert.ok(
          found.some(({ check, place }) => check === each.check && place.includes(each.place)),
          `not found; instead: ${told.join(", ") || "nothing"}`,
        );
        const others = found.filter(({ check, place }) =>
          check === each.check
            ? ALONE.has(check) && !place.includes(each.place)
            : each.also?.test(check) !== true,
        );
        assert.deepEqual(others, [], told.join(", "));
      });
    }
  });
  const planted = new Set(plants.map(({ check }) => check));
  const all = [...ROW_CHECKS.map(({ name }) => name), "results_incomplete"];
  assert.deepEqual(
    all.filter((name) => !planted.has(name)),
    [],
    "checks that nothing is planted for",
  );
  assert.deepEqual(await findViolations(bench.installation), [], "healthy after");
});

test("what was done before there was a log, or in a month that was detached, needs no entry", async () => {
  const missing = async (...sql: readonly string[]): Promise<ReadonlySet<string>> => {
    let found: readonly InvariantFinding[] = [];
    await undone(db, async (unguarded) => {
      await dropConstraints(unguarded);
      found = await plant(unguarded, { check: "", place: "", sql: ["delete from audit_entry", ...sql] });
    });
    return new Set(found.flatMap(({ check }) => (check.endsWith("_entry") ? check : [])));
  };
  const entries = ["session", "credential", "cancel", "review", "write", "key", "key_change"];
  const checks = await missing();
  for (const entry of entries) assert.ok(checks.has(`${entry}_entry`), entry);
  const laterLog = "update schema_migration set applied_at = app_now() + interval '1 day' where version = 7";
  assert.deepEqual(await missing(laterLog), new Set());
});

/** Does something to the store, looks, and undoes it. */
async function withDamage(
  damage: () => () => void,
  expected: { readonly check: string; readonly place: string; readonly problem?: RegExp },
): Promise<void> {
  const undo = damage();
  try {
    const found = await findViolations(bench.installation);
    assert.deepEqual(
      found.map(({ check, place }) => [check, place.includes(expected.place)]),
      [[expected.check, true]],
      JSON.stringify(found),
    );
    assert.match(found[0]?.problem ?? "", expected.problem ?? /./);
  } finally {
    undo();
  }
}

async function objectOf(purpose: string): Promise<{ readonly key: string; readonly file: string }> {
  const [row] = await db.query<{ key: string }>("select key from blob where purpose = $1 and run_id = $2", [
    purpose,
    left.completed,
  ]);
  const { key } = must(row, "an object");
  return { key, file: objects(key) };
}

for (const purpose of ["input", "step", "result"]) {
  test(`V5: an object of a ${purpose} that is missing, cut off or altered is named`, async () => {
    const { key, file } = await objectOf(purpose);
    const kept = `${file}.kept`;
    const back = (): void => renameSync(kept, file);
    await withDamage(() => (renameSync(file, kept), back), {
      check: "object",
      place: key,
      problem: /is missing/,
    });
    const damaged = (change: () => void) => () => {
      copyFileSync(file, kept);
      change();
      return back;
    };
    await withDamage(
      damaged(() => truncateSync(file, readFileSync(file).length - 1)),
      { check: "object", place: key, problem: /bytes, but \d+ were stored/ },
    );
    const flipped = (): void => {
      const bytes = readFileSync(file);
      bytes[0] = (bytes[0] ?? 0) ^ 1;
      writeFileSync(file, bytes);
    };
    await withDamage(damaged(flipped), { check: "object", place: key, problem: /SHA-256/ });
  });
}

/** A file that has been there for two days; its disposer. */
function leave(path: string, days = 2): () => void {
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, "left");
  const at = new Date(Date.now() - days * 86_400_000);
  utimesSync(path, at, at);
  return () => rmSync(path);
}

test("V11 and V14: what is left behind is named when it is old, and only then", async () => {
  const [account] = await bench.installation.database.db.query<{ id: string }>(
    "select id from account limit 1",
  );
  const own = account?.id ?? "";
  const unnamed = `inputs/${own}/${"a".repeat(24)}`;
  await withDamage(() => leave(objects(unnamed)), { check: "object_orphaned", place: unnamed });
  const half = `${unnamed}.0123456789ab.part`;
  await withDamage(() => leave(objects(half)), { check: "object_unfinished", place: half });
  const purged = `results/${own}/${left.purged}/${"a".repeat(16)}.json.br`;
  await withDamage(() => leave(objects(purged)), { check: "object_of_purged_run", place: purged });
  const scratch = `${left.failed}-1-abcdef`;
  const folder = join(bench.installation.dataFolder, "scratch", scratch);
  const leaveFolder = (days: number) => () => {
    mkdirSync(folder, { recursive: true });
    const at = new Date(Date.now() - days * 86_400_000);
    utimesSync(folder, at, at);
    return () => rmSync(folder, { recursive: true });
  };
  await withDamage(leaveFolder(1), { check: "scratch", place: scratch });
  const young = [leave(objects(unnamed), 0.5), leave(objects(half), 0.5), leaveFolder(0)()];
  try {
    assert.deepEqual(await findViolations(bench.installation), []);
  } finally {
    for (const undo of young) undo();
  }
});

test("V7: a credential that a tombstone names, and that is there, is named", async () => {
  const file = join(bench.installation.dataFolder, "tombstones.ndjson");
  const before = readFileSync(file, "utf8");
  const line = `${JSON.stringify({ v: 1, deleted: left.credential })}\n`;
  await withDamage(
    () => {
      appendFileSync(file, line);
      return () => writeFileSync(file, before);
    },
    { check: "tombstone", place: left.credential },
  );
  // One that was taken back says nothing.
  appendFileSync(file, `${line}${JSON.stringify({ v: 1, undone: left.credential })}\n`);
  assert.deepEqual(await findViolations(bench.installation), []);
  writeFileSync(file, before);
});

/** Past the table's guard. */
async function alterAudit(sql: string): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.query("set local session_replication_role = replica");
    await tx.query(sql);
  });
}

test("V9: an entry of the audit log that was changed, and a checkpoint of somebody else's, are named", async () => {
  const change = (from: string, to: string): string =>
    `update audit_entry set actor_kind = '${to}' where actor_kind = '${from}' and action = 'run.cancel'`;
  await alterAudit(change("api_key", "service"));
  const found = await findViolations(bench.installation);
  await alterAudit(change("service", "api_key"));
  assert.deepEqual(
    found.map(({ invariant, check }) => [invariant, check]),
    [["V9", "audit_changed"]],
    JSON.stringify(found),
  );
  const file = join(bench.installation.dataFolder, "audit-checkpoints.ndjson");
  appendFileSync(file, `${JSON.stringify({ chain: "x", count: 1, head: "00", at: "x", signature: "x" })}\n`);
  assert.deepEqual(
    (await findViolations(bench.installation)).map(({ check }) => check),
    ["audit_checkpoint"],
  );
  rmSync(file);
});

test("latchkey doctor --deep: 0 and a line for each invariant; 1, the place and the remedy when one does not hold", async () => {
  const healthy = await bench.installation.command("doctor", "--deep");
  assert.equal(healthy.code, 0, healthy.stdout + healthy.stderr);
  for (let number = 1; number <= 15; number++)
    assert.match(healthy.stdout, new RegExp(`^${number === 8 ? "skip" : "ok"} +V${number} `, "m"));
  assert.match(healthy.stderr, /rows +100 %/);
  const { key, file } = await objectOf("result");
  rmSync(file);
  const { code, stdout, stderr } = await bench.installation.command("doctor", "--deep");
  assert.equal(code, 1);
  assert.match(
    stdout,
    new RegExp(
      `^wrong V5 object ${key}: the result of run ${left.completed} is missing\\. Remedy: restore`,
      "m",
    ),
  );
  assert.match(stderr, /One thing is wrong/);
  assert.doesNotMatch(healthy.stdout + healthy.stderr + stdout + stderr, /canary/);
});

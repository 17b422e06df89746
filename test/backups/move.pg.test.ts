// docs/operate.md#latchkey-backup: "The same file moves an installation […] from the embedded PostgreSQL to one of your own and back".
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Database } from "#db/connection/pool.ts";
import { connect, openCaller } from "../caller.ts";
import { environmentOf, ROOT } from "../cli/program.ts";
import { ledger, LEDGER_LOGIN, ledgerDocuments, startTarget } from "../flow/target.ts";
import { install } from "../service.ts";
import { runCommand, startProcess } from "../service-process.ts";
import { folderWithKeys, openElsewhere, readAllRows } from "./stage.ts";

test("an installation moves into the embedded PostgreSQL and out of it again, and its logins work there", async () => {
  const target = await startTarget(ledger);
  await using installation = await install();
  await installation.apply(...ledgerDocuments(target.url));
  const key = await installation.createKey("acme");
  const service = await installation.serve();
  const credential = await connect(openCaller(service.url, key), "strat_ledger", LEDGER_LOGIN);
  const { body: first } = await openCaller(service.url, key).post("/blueprints/ledger/trigger", {
    credential_id: credential,
  });
  assert.equal((await openCaller(service.url, key).waitForRun(first.id)).body.status, "completed");
  await service.end();
  const rows = await readAllRows(installation.database.db);
  const [out, back] = ["out.latchkey", "back.latchkey"].map((name) =>
    join(installation.dataFolder, name),
  ) as [string, string];
  assert.equal((await installation.command("backup", out)).code, 0);

  const folder = folderWithKeys(installation, ["signing.key", "master.key"]);
  const { DATABASE_URL: _, ...surroundings } = installation.environment;
  const embedded = { ...surroundings, LATCHKEY_DATA_DIR: folder };
  try {
    const restored = await runCommand(["restore", out], embedded);
    assert.equal(restored.code, 0, restored.stderr);
    const here = await startProcess(embedded, ["api", "worker"], () => {});
    const caller = openCaller(here.url, key);
    assert.equal((await caller.get(`/blueprint-runs/${first.id}/results`)).status, 200);
    const { body: second } = await caller.post("/blueprints/ledger/trigger", { credential_id: credential });
    assert.equal((await caller.waitForRun(second.id)).body.status, "completed");
    // While the service runs.
    const backup = await runCommand(["backup", back], embedded);
    assert.equal(backup.code, 0, backup.stderr);
    await here.end();

    await using elsewhere = await openElsewhere(installation);
    const again = await elsewhere.command("restore", back);
    assert.equal(again.code, 0, again.stderr);
    const found = await readAllRows(elsewhere.database.db);
    for (const table of [
      "account",
      "credential",
      "strategy_version",
      "blueprint_version",
      "api_key",
      "operator",
    ])
      assert.deepEqual(
        found.get(table)?.map((row) => row.replaceAll(/\d{4}-\d\d-\d\d[^",)]*/g, "")),
        rows.get(table)?.map((row) => row.replaceAll(/\d{4}-\d\d-\d\d[^",)]*/g, "")),
        table,
      );
    assert.equal((await elsewhere.command("doctor")).code, 0);
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await target.close();
  }
});

/** The highest memory of a command's own process, and its time. */
async function peakMb(
  arguments_: readonly string[],
  environment: Record<string, string>,
): Promise<{ readonly mb: number; readonly seconds: number; readonly stderr: string }> {
  const beganMs = performance.now();
  // Not the highest of `resourceUsage`, in which the test's own process counts, too.
  const script = `import { readFileSync } from "node:fs";
    process.on("exit", () => process.stderr.write(readFileSync("/proc/self/status", "utf8")));`;
  const child = spawn(
    process.execPath,
    [
      "--disable-warning=ExperimentalWarning",
      "--import",
      `data:text/javascript,${encodeURIComponent(script)}`,
      join(ROOT, "src/main.mjs"),
      ...arguments_,
    ],
    { env: environmentOf(environment), stdio: ["ignore", "ignore", "pipe"] },
  );
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const code = await new Promise((resolve) => child.once("close", resolve));
  assert.equal(code, 0, stderr);
  return {
    mb: Number(/VmHWM:\s+(\d+)/.exec(stderr)?.[1]) / 1_024,
    seconds: (performance.now() - beganMs) / 1_000,
    stderr,
  };
}

/** Rows that are large as text, and little on disk. Their ids grow with time, as all of the product's do. */
async function addRows(db: Database, megabytes: number): Promise<void> {
  const portion = 10;
  for (let done = 0; done < megabytes; done += portion)
    await db.query({
      text: `insert into audit_entry (id, occurred_at, actor_kind, action, subject_id, detail, seal)
             select 'aud_filler' || uuidv7(), now(), 'cli', 'run.purge', 'run_x', repeat(md5(n::text), 20), sha256('x')
             from generate_series(1, $1::int) n`,
      values: [Math.round((Math.min(portion, megabytes - done) * 1_048_576) / ROW_BYTES)],
      timeoutMs: 60_000,
    });
}

/** Files with holes: their bytes are read, sealed and written like others, and take no room. */
async function addObjects(db: Database, dataFolder: string, megabytes: number): Promise<void> {
  const [account] = await db.query<{ id: string }>("select id from account");
  const folder = `inputs/${account?.id}`;
  mkdirSync(join(dataFolder, "objects", folder), { recursive: true });
  for (let number = 0; number * OBJECT_MB < megabytes; number++) {
    const key = `${folder}/${String(number).padStart(24, "0")}`;
    const bytes = Math.min(OBJECT_MB, megabytes - number * OBJECT_MB) * 1_048_576;
    writeFileSync(join(dataFolder, "objects", key), "");
    truncateSync(join(dataFolder, "objects", key), bytes);
    await db.query(
      "insert into blob (key, account_id, purpose, size_bytes, sha256) values ($1, $2, 'input', $3, sha256('x'))",
      [key, account?.id, bytes],
    );
  }
}

/** On a busy machine Node collects buffers late, however much goes through them. Half of the data would be more. */
const GARBAGE_MB_MAX = 200;
const ROW_BYTES = 800;
const OBJECT_MB = 64;
/** Half of it rows, half objects. LATCHKEY_BACKUP_MB=10240 npm run test:all -- backups/move: ten gigabytes. */
const LARGE_MB = Number(process.env["LATCHKEY_BACKUP_MB"] ?? 500);

test(
  `few rows, or ${LARGE_MB} MB of rows and objects: memory does not grow, and progress is told`,
  { timeout: 600_000 + LARGE_MB * 300 },
  async (t) => {
    await using installation = await install();
    await installation.apply("account: acme\nname: Acme");
    const { db } = installation.database;
    const file = join(installation.dataFolder, "large.latchkey");
    await addRows(db, 1);
    const small = await peakMb(["backup", file], installation.environment);
    rmSync(file);
    await addRows(db, LARGE_MB / 2);
    await addObjects(db, installation.dataFolder, LARGE_MB / 2);
    const large = await peakMb(["backup", file], installation.environment);
    await using elsewhere = await openElsewhere(installation);
    const restoring = await peakMb(["restore", file], elsewhere.environment);
    const count = async (of: Database): Promise<readonly unknown[]> =>
      await of.query(
        `select (select count(*) from audit_entry where action = 'run.purge') as rows, (select count(*) from blob) as objects`,
      );
    assert.deepEqual(await count(elsewhere.database.db), await count(db));
    const said = [small, large, restoring].map(
      ({ mb, seconds }) => `${Math.round(mb)} MB in ${Math.round(seconds)} s`,
    );
    t.diagnostic(`a small backup, a large one, its restore: ${said.join(", ")}`);
    assert.match(large.stderr, /Backing up, in MB, +[4-6]\d % /);
    assert.ok(
      large.mb < small.mb + GARBAGE_MB_MAX,
      `a large backup took ${large.mb} MB, a small one ${small.mb}`,
    );
    assert.ok(restoring.mb < small.mb + GARBAGE_MB_MAX, `its restore took ${restoring.mb} MB`);
  },
);

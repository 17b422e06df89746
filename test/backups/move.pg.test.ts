// docs/operate.md#latchkey-backup: "The same file moves an installation […] from the embedded PostgreSQL to one of your own and back".
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { connect, openCaller } from "../caller.ts";
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

test("few rows or 200 MB of them: memory does not grow", async (t) => {
  await using installation = await install();
  await installation.apply("account: acme\nname: Acme");
  const { db } = installation.database;
  const fill = async (count: number): Promise<void> =>
    void (await db.query({
      text: `insert into audit_entry (id, occurred_at, actor_kind, action, subject_id, detail, seal)
             select 'aud_filler' || n || '_' || $1::int, now(), 'cli', 'run.purge', 'run_x', repeat(md5(n::text), 20), sha256('x')
             from generate_series(1, $1::int) n`,
      values: [count],
      timeoutMs: 60_000,
    }));
  const file = join(installation.dataFolder, "large.latchkey");
  const peakMb = async (
    arguments_: readonly string[],
    environment: Record<string, string>,
  ): Promise<number> => {
    const { spawn } = await import("node:child_process");
    const { ROOT, environmentOf } = await import("../cli/program.ts");
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
    let errors = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
    const code = await new Promise((resolve) => child.once("close", resolve));
    assert.equal(code, 0, errors);
    return Number(/VmHWM:\s+(\d+)/.exec(errors)?.[1]) / 1_024;
  };
  await fill(1_000);
  const small = await peakMb(["backup", file], installation.environment);
  rmSync(file);
  await fill(300_000);
  const large = await peakMb(["backup", file], installation.environment);
  await using elsewhere = await openElsewhere(installation);
  const restoring = await peakMb(["restore", file], elsewhere.environment);
  const counted = await elsewhere.database.db.query(
    "select from audit_entry where action = 'run.purge' limit 1",
  );
  assert.equal(counted.length, 1);
  const rounded = [small, large, restoring].map(Math.round);
  t.diagnostic(`peak of a small backup, a large one, its restore: ${rounded.join(", ")} MB`);
  assert.ok(large < small + 100, `a backup of 200 MB of rows took ${large} MB, one of few ${small}`);
  assert.ok(restoring < small + 120, `its restore took ${restoring} MB`);
});

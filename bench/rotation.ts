/**
 * A rotation of the master key under load: so many credentials sealed anew while the service answers, the rewrap killed with
 * -9 in the middle and run again. Counts failed reads, and compares the API's latency with that of the minute before.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { prepareVault } from "#actions/vault/prepare-vault.ts";
import { must } from "#lib/assert.ts";
import { openFileSource, readKeys } from "#vault/key-source.ts";
import { openVault, type Vault } from "#vault/vault.ts";
import { openCaller, type ApiAnswer, type Caller } from "../test/caller.ts";
import { startLatchkey } from "../test/cli/program.ts";
import { install, type Installation } from "../test/service.ts";
import { plantSealed } from "../test/vault/plant.ts";

const PORTAL = `strategy: strat_portal
account: acme
hosts: [https://portal.example]
fields: [{ key: token, type: password, required: true }]
login: { type: bearer, token: token }`;

interface Options {
  readonly credentials: number;
  readonly connections: number;
  readonly baselineSeconds: number;
  /** Rows at a time; undefined: the command's own. */
  readonly batch: string | undefined;
}

interface Load {
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly requests: number;
  readonly failed: number;
}

async function benchRotation(options: Options, say: (text: string) => void): Promise<void> {
  await using installation = await install({ LATCHKEY_LOG_LEVEL: "warn" });
  await installation.apply("account: acme\nrate_limit: off", PORTAL);
  const { db } = installation.database;
  const [key] = await db.query<{ publicJwk: string }>(`select public_jwk as "publicJwk" from vault_key`);
  say(`sealing ${options.credentials} credentials`);
  const sealer = openVault({ publicKey: must(key, "a key").publicJwk });
  const ids = await plantSealed(db, sealer, "strat_portal", options.credentials);
  await db.query("analyze credential");
  const service = await installation.serveProcess();
  const caller = openCaller(service.url, await installation.createKey("acme"));
  await loadWhile(caller, options.connections, sleep(2_000));
  const before = await loadWhile(caller, options.connections, sleep(options.baselineSeconds * 1_000));

  const kid = await rotateTo(installation);
  const reading = readAllTheTime(installation, ids);
  const startedAt = performance.now();
  let killedAt = 0;
  const during = await loadWhile(
    caller,
    options.connections,
    rewrapWithKill(installation, kid, options, say, (done) => (killedAt = done)),
  );
  const seconds = (performance.now() - startedAt) / 1_000;
  const { reads, failures } = await reading.stop();
  const [left] = await db.query<{ total: number }>(
    "select count(*) as total from credential where kid <> $1",
    [kid],
  );
  console.log(
    `rotated ${options.credentials} credentials in ${seconds.toFixed(1)} s, kill -9 after ${killedAt}, left over: ${left?.total}`,
  );
  console.log(`reads meanwhile: ${reads}, failed: ${failures}`);
  console.log("| API, session reads and creations | requests | failed | p50 | p99 |\n|---|---|---|---|---|");
  for (const [what, load] of [
    ["before", before],
    ["during the rotation", during],
  ] as const)
    console.log(
      `| ${what} | ${load.requests} | ${load.failed} | ${load.p50.toFixed(1)} ms | ${load.p99.toFixed(1)} ms |`,
    );
  console.log(`p99 during / before: ${(during.p99 / before.p99).toFixed(2)} (goal: 1.20 or less)`);
  await service.end();
}

async function rotateTo(installation: Installation): Promise<string> {
  const added = await installation.command("master-key", "add");
  const kid = must(/Added (\S+) to/.exec(added.stdout)?.[1], added.stderr);
  const promoted = await installation.command("master-key", "promote", kid);
  if (promoted.code !== 0) throw new Error(promoted.stderr);
  return kid;
}

async function rewrapWithKill(
  installation: Installation,
  kid: string,
  { credentials, batch }: Options,
  say: (text: string) => void,
  killedAfter: (done: number) => void,
): Promise<void> {
  const done = async (): Promise<number> => {
    const [row] = await installation.database.db.query<{ total: number }>(
      "select count(*) as total from credential where kid = $1",
      [kid],
    );
    return row?.total ?? 0;
  };
  const rewrap = ["master-key", "rewrap", ...(batch === undefined ? [] : ["--batch", batch])];
  const first = startLatchkey(rewrap, installation.environment);
  while ((await done()) < credentials * 0.4) await sleep(500);
  first.child.kill("SIGKILL");
  await first.ended;
  killedAfter(await done());
  say(first.stderr().trim());
  const second = await startLatchkey(rewrap, installation.environment).ended;
  say(second.stderr.trim());
  if (second.code !== 0) throw new Error(second.stderr);
}

/** Opens credentials as a worker does, one every few milliseconds. */
function readAllTheTime(installation: Installation, ids: readonly string[]) {
  let over = false;
  let [reads, failures] = [0, 0];
  const { db } = installation.database;
  const reading = (async () => {
    const vault: Vault = await prepareVault(
      db,
      await readKeys(openFileSource(join(installation.dataFolder, "master.key"))),
    );
    const [account] = await db.query<{ id: string }>("select id from account");
    while (!over) {
      const rowId = must(ids[(reads++ * 7_919) % ids.length], "an id");
      const [row] = await db.query<{ sealed: Buffer }>("select sealed from credential where id = $1", [
        rowId,
      ]);
      const accountId = must(account, "account").id;
      const binding = { purpose: "credential", accountId, rowId, strategyId: "strat_portal" } as const;
      await vault.open(must(row, rowId).sealed, binding).catch(() => failures++);
      await sleep(5);
    }
  })();
  return {
    stop: async () => {
      over = true;
      await reading;
      return { reads, failures };
    },
  };
}

/** Callers that create sessions and read them, until the work is done. */
async function loadWhile(caller: Caller, connections: number, work: Promise<unknown>): Promise<Load> {
  let over = false;
  const tookMs: number[] = [];
  let failed = 0;
  const timed = async (status: number, call: () => Promise<ApiAnswer>): Promise<ApiAnswer> => {
    const startedAt = performance.now();
    const answer = await call();
    tookMs.push(performance.now() - startedAt);
    if (answer.status !== status) failed++;
    return answer;
  };
  const calling = Array.from({ length: connections }, async () => {
    while (!over) {
      const { body: session } = await timed(
        201,
        async () => await caller.post("/credential-sessions", { strategy_id: "strat_portal" }),
      );
      for (let reads = 0; reads < 4; reads++)
        await timed(200, async () => await caller.get(`/credential-sessions/${session.id}`));
      await sleep(10);
    }
  });
  try {
    await work;
  } finally {
    over = true;
    await Promise.all(calling);
  }
  const sorted = tookMs.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? 0;
  return { p50: at(0.5), p99: at(0.99), requests: sorted.length, failed };
}

const { values } = parseArgs({
  // After the name of the bench.
  args: process.argv.slice(3),
  options: {
    credentials: { type: "string", default: "100000" },
    connections: { type: "string", default: "4" },
    seconds: { type: "string", default: "30" },
    batch: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log("npm run bench -- rotation [--credentials n] [--connections n] [--seconds n] [--batch n]");
  process.exit(0);
}
await benchRotation(
  {
    credentials: Number(values.credentials),
    connections: Number(values.connections),
    baselineSeconds: Number(values.seconds),
    batch: values.batch,
  },
  (text) => void process.stderr.write(`${text}\n`),
);

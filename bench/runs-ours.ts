import { Agent } from "node:http";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { insertRunTogether } from "#db/runs/new-runs.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { newId, newRunKey } from "#lib/new-id.ts";
import { install } from "../test/service.ts";
import { installCheckout } from "./checkout.ts";
import type { Contender, Workers } from "./runs-drain.ts";
import { runLightly, trigger as triggerOne } from "./runs-light.ts";
import { deleteRunsSince } from "./runs-plant.ts";
import type { BenchServer } from "./server.ts";
import type { Ground } from "./stage.ts";

export type BlueprintKey = "noop" | "steps";

/** A real installation with the Blueprints of the bench, and nothing that limits rates. */
export interface RunStage extends AsyncDisposable {
  readonly installation: Ground;
  /** Where its database is. */
  readonly server: BenchServer;
  /** Runs are made by triggers over HTTP: another checkout's tables may be other ones. */
  readonly isOutside: boolean;
  readonly apiKey: string;
  readonly ids: StageIds;
  startWorkers(count: number): Promise<Workers>;
}

interface StageIds {
  readonly accountId: string;
  readonly apiKeyId: string;
  readonly blueprintIds: Readonly<Record<BlueprintKey, string>>;
}

/** The most that an account may have; what limits here is the workers. */
const ACCOUNT_CONCURRENCY = 10_000;
const TIMEOUT_MS = 1_800_000;
const RETENTION_MS = 365 * 86_400_000;
const PREFILLED_AT_ONCE = 1_000;
const TRIGGERED_AT_ONCE = 64;

const documents = (targetUrl: string): readonly string[] => [
  `account: acme\nrate_limit: off\nretention: 365d\nconcurrency: ${ACCOUNT_CONCURRENCY}`,
  // The smallest that is legal: an output reads records, and what gives records reads a value. The triggers give none.
  `blueprint: noop
account: acme
nodes:
  - { id: given, type: input, refKey: given }
  - { id: records, type: parse, from: given, format: json }
  - { id: out, type: output, refKey: out, from: records }`,
  `blueprint: steps
account: acme
hosts: [${targetUrl}]
nodes:
${["one", "two", "three"].map((id, at) => `  - { id: ${id}, type: http, request: { url: "${targetUrl}/${at}" }, parse: { format: json } }`).join("\n")}
  - { id: out, type: output, refKey: out, from: three }`,
];

/** `folder`: the checkout whose program it is; null: this one's, in parts within the bench. */
export async function openRunStage(
  server: BenchServer,
  { targetUrl, concurrency }: { readonly targetUrl: string; readonly concurrency: number },
  { others = [], folder = null }: { others?: readonly string[]; folder?: string | null } = {},
): Promise<RunStage> {
  await using opened = new AsyncDisposableStack();
  const settings = { LATCHKEY_LOG_LEVEL: "error", LATCHKEY_WORKER_CONCURRENCY: String(concurrency) };
  const installation = opened.use(
    folder === null ? await install(settings) : await installCheckout(folder, server, settings),
  );
  await installation.apply(...documents(targetUrl), ...others);
  const apiKey = await installation.createKey("acme");
  const ids = await readIds(installation);
  const kept = opened.move();
  return {
    installation,
    server,
    isOutside: folder !== null,
    apiKey,
    ids,
    startWorkers: async (count) => await startWorkers(installation, count),
    [Symbol.asyncDispose]: async () => await kept.disposeAsync(),
  };
}

async function readIds({ database }: Ground): Promise<StageIds> {
  const rows = await database.db.query<{
    accountId: string;
    apiKeyId: string;
    key: BlueprintKey;
    id: string;
  }>(
    `select account.id as "accountId", api_key.id as "apiKeyId", blueprint.key, blueprint.id
     from account join api_key on api_key.account_id = account.id join blueprint on blueprint.account_id = account.id`,
  );
  const [row] = rows;
  const idOf = (key: BlueprintKey): string => rows.find((each) => each.key === key)?.id ?? "";
  if (!row) throw new Error("The preparation has no account");
  return { ...row, blueprintIds: { noop: idOf("noop"), steps: idOf("steps") } };
}

async function startWorkers(installation: Ground, count: number): Promise<Workers> {
  const services = await Promise.all(
    Array.from({ length: count }, async () => await installation.serveProcess({}, ["worker"])),
  );
  return {
    pids: services.map(({ child }) => child.pid ?? 0),
    [Symbol.asyncDispose]: async () =>
      void (await Promise.all(services.map(async (service) => await service.end()))),
  };
}

/** Our runs of one Blueprint, as any contender. `keep`: runs that were there before stay. */
export async function ourContender(
  stage: RunStage,
  blueprint: BlueprintKey,
  title: string,
  { keep = false }: { keep?: boolean } = {},
): Promise<Contender> {
  const { db } = stage.installation.database;
  const [row] = await db.query<{ now: Date }>("select app_now() as now");
  const since = keep && row ? row.now : new Date(0);
  const remove = async (): Promise<void> => {
    if (keep) await deleteRunsSince(db, since);
    else await removeRuns(stage);
  };
  return {
    id: `${title} ${blueprint}`,
    title,
    db,
    server: stage.server,
    prefill: async (count) => {
      await remove();
      await (stage.isOutside ? triggerRuns : enqueueRuns)(stage, blueprint, count);
      await db.query({ text: "analyze run", timeoutMs: 60_000 });
    },
    startWorkers: async (count) => await stage.startWorkers(count),
    finished: async () => await countFinished(stage, since),
    runLightly: async (rate, seconds) => {
      await remove();
      return await runLightly(stage, blueprint, rate, seconds);
    },
  };
}

/** Everything of all runs, as if there had never been one. */
async function removeRuns({ installation }: RunStage): Promise<void> {
  const { db } = installation.database;
  await db.query("truncate run cascade");
  await db.query("delete from graphile_worker._private_jobs");
  await rm(join(installation.dataFolder, "objects"), { recursive: true, force: true });
}

/** By the product's own statement for triggers, so that the rows are what it makes. */
export async function enqueueRuns(stage: RunStage, blueprint: BlueprintKey, count: number): Promise<void> {
  const { db } = stage.installation.database;
  const { accountId, apiKeyId, blueprintIds } = stage.ids;
  const one = async (): Promise<void> => {
    const run = {
      id: newId(ID_PREFIX.run),
      runKey: newRunKey(),
      accountId,
      blueprintId: blueprintIds[blueprint],
      blueprintVersion: 1,
      apiKeyId,
      operatorId: null,
      againOf: null,
      name: null,
      metadata: "{}",
      ignoredKeys: [],
      timeoutMs: TIMEOUT_MS,
      retentionMs: RETENTION_MS,
      queue: null,
      group: null,
      traceparent: null,
      scheduleId: null,
      credentials: [],
      inputs: [],
    };
    if (!(await insertRunTogether(db, run, null))) throw new Error("A run of the backlog was not made");
  };
  for (let made = 0; made < count; made += PREFILLED_AT_ONCE)
    await Promise.all(Array.from({ length: Math.min(PREFILLED_AT_ONCE, count - made) }, one));
}

async function triggerRuns(stage: RunStage, blueprint: BlueprintKey, count: number): Promise<void> {
  if (count === 0) return;
  const service = await stage.installation.serveProcess({}, ["api"]);
  const agent = new Agent({ keepAlive: true, maxSockets: TRIGGERED_AT_ONCE });
  let left = count;
  const trigger = async (): Promise<void> => {
    while (left-- > 0) await triggerOne(service.url, stage.apiKey, agent, blueprint);
  };
  await Promise.all(Array.from({ length: TRIGGERED_AT_ONCE }, trigger));
  agent.destroy();
  await service.end();
}

/**
 * Of the runs made since then, those that have completed. By the account's index: a look that reads millions of old runs would take
 * the cores from the drain that it looks at.
 */
async function countFinished({ installation, ids }: RunStage, since: Date): Promise<number> {
  const rows = await installation.database.db.query<{ status: string; total: number; detail: string | null }>(
    `select status, count(*) as total, max(error_detail) as detail from run
     where account_id = $2 and created_at >= $1 and ended_at is not null group by status`,
    [since, ids.accountId],
  );
  const failed = rows.find(({ status }) => status !== "completed");
  if (failed) throw new Error(`${failed.total} runs ended as ${failed.status}: ${failed.detail}`);
  return rows[0]?.total ?? 0;
}

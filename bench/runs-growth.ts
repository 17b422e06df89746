import { openCaller } from "../test/caller.ts";
import { measureDrain, type Contender, type Drain, type DrainTiming } from "./runs-drain.ts";
import { median } from "./runs-latency.ts";
import { openRunStage, ourContender, type BlueprintKey, type RunStage } from "./runs-ours.ts";
import { plantRuns, settleTables } from "./runs-plant.ts";
import type { BenchServer } from "./server.ts";

export interface GrowthOptions extends DrainTiming {
  readonly rounds: number;
  readonly few: number;
  readonly many: number;
  readonly concurrency: number;
  readonly targetUrl: string;
}

export interface GrowthRow {
  readonly blueprint: BlueprintKey;
  readonly fewPerSecond: number;
  readonly manyPerSecond: number;
  /** The median of the rounds. */
  readonly ratio: number;
}

/** Of finished runs, every tenth has had the three steps. */
const STEPS_SHARE = 0.1;
/** Finished runs are of the last thirty days. */
const DAYS_MS = 30 * 86_400_000;
const GUESS = 500;

/** The same backlogs drained beside few and beside many finished runs, in turns. */
export async function measureGrowth(
  server: BenchServer,
  options: GrowthOptions,
  say: (text: string) => void,
): Promise<readonly GrowthRow[]> {
  await using few = await openRunStage(server, options);
  await using many = await openRunStage(server, options);
  await plantFinished(few, options.few, say);
  await plantFinished(many, options.many, say);
  const rows: GrowthRow[] = [];
  for (const blueprint of ["noop", "steps"] as const) {
    const beside = async (stage: RunStage, finished: number): Promise<Contender> =>
      await ourContender(stage, blueprint, `${blueprint} beside ${finished} finished runs`, { keep: true });
    const [ofFew, ofMany] = [await beside(few, options.few), await beside(many, options.many)];
    const rounds: { readonly few: Drain; readonly many: Drain }[] = [];
    for (let round = 0; round < options.rounds; round++) {
      const drains = await drainInTurn(ofFew, ofMany, round, options);
      say(
        `${blueprint}: ${Math.round(drains.few.perSecond)}/s beside ${options.few}, ` +
          `${Math.round(drains.many.perSecond)}/s beside ${options.many} finished runs`,
      );
      rounds.push(drains);
    }
    rows.push({
      blueprint,
      fewPerSecond: median(rounds.map((each) => each.few.perSecond)),
      manyPerSecond: median(rounds.map((each) => each.many.perSecond)),
      ratio: median(rounds.map((each) => each.many.perSecond / each.few.perSecond)),
    });
  }
  return rows;
}

/** Each goes first in every other round: what comes second finds the machine warmer, or others busier. */
async function drainInTurn(
  ofFew: Contender,
  ofMany: Contender,
  round: number,
  timing: DrainTiming,
): Promise<{ readonly few: Drain; readonly many: Drain }> {
  const drain = async (contender: Contender): Promise<Drain> =>
    await measureDrain(contender, 1, timing, GUESS);
  if (round % 2 === 0) {
    const few = await drain(ofFew);
    return { few, many: await drain(ofMany) };
  }
  const many = await drain(ofMany);
  return { few: await drain(ofFew), many };
}

async function plantFinished(stage: RunStage, count: number, say: (text: string) => void): Promise<void> {
  const { connectionString } = stage.installation.database;
  say(`planting ${count} finished runs`);
  const templates = await finishOneOfEach(stage);
  const steps = Math.round(count * STEPS_SHARE);
  const apartMs = DAYS_MS / count;
  await plantRuns(connectionString, { templateId: templates.noop, count: count - steps, apartMs, mark: "0" });
  await plantRuns(connectionString, {
    templateId: templates.steps,
    count: steps,
    apartMs: DAYS_MS / steps,
    mark: "1",
  });
  await settleTables(connectionString);
}

/** What a real worker makes of a run; the copies are older. */
async function finishOneOfEach(stage: RunStage): Promise<Readonly<Record<BlueprintKey, string>>> {
  const service = await stage.installation.serveProcess();
  const caller = openCaller(service.url, stage.apiKey);
  const finish = async (blueprint: BlueprintKey): Promise<string> => {
    const { status, body, text } = await caller.post(`/blueprints/${blueprint}/trigger`, {});
    if (status !== 202) throw new Error(`A trigger of the preparation was answered ${status}: ${text}`);
    const ended = await caller.waitForRun(body.id);
    if (ended.body.status !== "completed")
      throw new Error(`A run of the preparation ended as ${ended.body.status}`);
    return body.id;
  };
  const ids = { noop: await finish("noop"), steps: await finish("steps") };
  await service.end();
  return ids;
}

export function renderGrowth(rows: readonly GrowthRow[], { few, many }: GrowthOptions): string {
  return rows
    .map(
      ({ blueprint, fewPerSecond, manyPerSecond, ratio }) =>
        `${blueprint}: ${Math.round(fewPerSecond)}/s beside ${few.toLocaleString("en-US")} finished runs, ` +
        `${Math.round(manyPerSecond)}/s beside ${many.toLocaleString("en-US")}: ${Math.round(ratio * 100)} % (goal: 90 %)`,
    )
    .join("\n");
}

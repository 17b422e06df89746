import { setTimeout as sleep } from "node:timers/promises";
import { startProgram } from "./processes.ts";
import type { ContestOptions } from "./runs-contest.ts";
import { ourContender, type BlueprintKey, type RunStage } from "./runs-ours.ts";
import type { Look, ProfileLine } from "./serve-process.ts";

const LINES = 45;
/** What the profiler leaves of the speed must not end the backlog either. */
const RUNS_PER_SECOND = 6_000;

/** Where the CPU of a worker goes while it drains, by functions' own time. */
export async function profileRuns(stage: RunStage, options: ContestOptions): Promise<string> {
  const texts: string[] = [];
  for (const blueprint of ["noop", "steps"] as const satisfies readonly BlueprintKey[]) {
    if (!options.groups.includes(blueprint)) continue;
    const contender = await ourContender(stage, blueprint, blueprint);
    await contender.prefill(RUNS_PER_SECOND * (options.warmSeconds + options.seconds));
    await using worker = startProgram("./serve-process.ts", {
      environment: stage.installation.environment,
      roles: ["worker"],
    });
    await worker.ask({ want: "url" } satisfies Look);
    await sleep(options.warmSeconds * 1_000);
    const before = await contender.finished();
    const lines = await worker.ask<readonly ProfileLine[]>({
      want: "profile",
      seconds: options.seconds,
    } satisfies Look);
    const perSecond = ((await contender.finished()) - before) / options.seconds;
    texts.push(
      `${blueprint}: ${Math.round(perSecond)}/s under the profiler\n` +
        lines
          .slice(0, LINES)
          .map(({ what, share }) => `${(share * 100).toFixed(1).padStart(5)} %  ${what}`)
          .join("\n"),
    );
  }
  return texts.join("\n\n");
}

/** `npm run bench -- runs --against FOLDER`: runs of this checkout and of another, in turns. */
import { inTurns, ratioOfPairs, type Compared } from "./pairs.ts";
import { GROUPS, type ContestOptions } from "./runs-contest.ts";
import { measureDrain } from "./runs-drain.ts";
import { openRunStage, ourContender, type RunStage } from "./runs-ours.ts";
import { openServer } from "./server.ts";

const GUESS = 1_000;

/** Backlogs that triggers made, drained by one worker process of each side. A server of its own for each. */
export async function compareRuns(
  folders: { readonly here: string; readonly there: string },
  options: ContestOptions,
  say: (text: string) => void,
): Promise<readonly Compared[]> {
  await using opened = new AsyncDisposableStack();
  const open = async (folder: string): Promise<RunStage> => {
    const server = opened.use(await openServer({ autovacuum: false, statements: false }));
    return opened.use(await openRunStage(server, options, { folder }));
  };
  const [here, there] = [await open(folders.here), await open(folders.there)];
  const compared: Compared[] = [];
  for (const { id, ours, title } of GROUPS.filter((group) => options.groups.includes(group.id))) {
    const drains = async (stage: RunStage, name: string) => {
      const contender = await ourContender(stage, ours, name);
      return async () => (await measureDrain(contender, 1, options, GUESS)).costs;
    };
    const [drainHere, drainThere] = [await drains(here, "here"), await drains(there, "there")];
    const pairs = await inTurns(options.rounds, drainHere, drainThere);
    const { median, low, high } = ratioOfPairs(pairs);
    say(`${title}: ${median.toFixed(3)} of the CPU there (${low.toFixed(3)} to ${high.toFixed(3)})`);
    compared.push({ id, title, pairs });
  }
  return compared;
}

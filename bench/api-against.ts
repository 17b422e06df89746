/** `npm run bench -- api --against FOLDER`: this checkout and another, request by request, in turns. */
import { installCheckout } from "./checkout.ts";
import { loadAndLook, type Answering, type Timing } from "./measure.ts";
import { inTurns, ratioOfPairs, type Compared } from "./pairs.ts";
import type { RequestKind } from "./scenarios.ts";
import { openServer } from "./server.ts";
import { openStage, type Stage } from "./stage.ts";

interface Side {
  readonly stage: Stage;
  readonly service: Answering;
}

/** A server of its own for each, so that what PostgreSQL does is known to be theirs. */
async function openSide(folder: string, opened: AsyncDisposableStack): Promise<Side> {
  const server = opened.use(await openServer({ autovacuum: false, statements: false }));
  const installation = opened.use(await installCheckout(folder, server, { LATCHKEY_LOG_LEVEL: "error" }));
  const stage = await openStage(server, installation);
  const { url, child } = await stage.serve();
  return { stage, service: { url, pid: child.pid ?? 0 } };
}

export async function compareApis(
  folders: { readonly here: string; readonly there: string },
  kinds: readonly RequestKind[],
  timing: Timing,
  say: (text: string) => void,
): Promise<readonly Compared[]> {
  await using opened = new AsyncDisposableStack();
  const here = await openSide(folders.here, opened);
  const there = await openSide(folders.there, opened);
  const compared: Compared[] = [];
  for (const scenario of kinds) {
    const costsOf = async ({ stage, service }: Side, each: Timing) =>
      (await loadAndLook(stage, service, scenario, each)).costs;
    // Compiled code and filled caches, once; what else a warm-up is for has been done in the round before.
    for (const side of [here, there]) await costsOf(side, timing);
    const short = { ...timing, warmSeconds: 0.3 };
    const pairs = await inTurns(
      timing.rounds,
      async () => await costsOf(here, short),
      async () => await costsOf(there, short),
    );
    const { median, low, high } = ratioOfPairs(pairs);
    say(`${scenario.title}: ${median.toFixed(3)} of the CPU there (${low.toFixed(3)} to ${high.toFixed(3)})`);
    compared.push({ id: scenario.id, title: scenario.title, pairs });
  }
  return compared;
}

/**
 * `npm run bench -- api --against FOLDER`: this checkout and another, request by request, in turns. `--with NAME=VALUE`: this one with a
 * setting, beside itself without it.
 */
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

export interface Sides {
  readonly here: string;
  readonly there: string;
  /** Settings of `here` alone. */
  readonly settings: Readonly<Record<string, string>>;
  /**
   * How often both are started. Two processes of one program differ by some percent for as long as they live, in how their memory lies; a
   * small difference is only seen in the median of several. Each starts first in every other one.
   */
  readonly starts: number;
}

/** As Prometheus does by default, three times as often. */
const SCRAPE_EVERY_MS = 5_000;

/** A server of its own for each, so that what PostgreSQL does is known to be theirs. */
async function openSide(
  folder: string,
  settings: Readonly<Record<string, string>>,
  opened: AsyncDisposableStack,
): Promise<Side> {
  const server = opened.use(await openServer({ autovacuum: false, statements: false }));
  const installation = opened.use(await installCheckout(folder, server, { LATCHKEY_LOG_LEVEL: "error" }));
  const stage = await openStage(server, installation);
  const { url, child } = await stage.serve(settings);
  const { LATCHKEY_METRICS_PORT: port } = settings;
  if (port !== undefined) opened.use(scrape(`http://127.0.0.1:${port}/metrics`));
  return { stage, service: { url, pid: child.pid ?? 0 } };
}

function scrape(url: string): Disposable {
  const timer = setInterval(
    () => void fetch(url).then(async (answer) => await answer.text()),
    SCRAPE_EVERY_MS,
  );
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

export async function compareApis(
  sides: Sides,
  kinds: readonly RequestKind[],
  timing: Timing,
  say: (text: string) => void,
): Promise<readonly Compared[]> {
  const all: Compared[] = kinds.map(({ id, title }) => ({ id, title, pairs: [] }));
  for (let start = 0; start < sides.starts; start++) {
    const found = await compareOnce(sides, start % 2 === 0, kinds, timing, say);
    for (const [index, { pairs }] of found.entries()) all[index]?.pairs.push(...pairs);
  }
  return all;
}

async function compareOnce(
  sides: Sides,
  isHereFirst: boolean,
  kinds: readonly RequestKind[],
  timing: Timing,
  say: (text: string) => void,
): Promise<readonly Compared[]> {
  await using opened = new AsyncDisposableStack();
  const openHere = async (): Promise<Side> => await openSide(sides.here, sides.settings, opened);
  const first = isHereFirst ? await openHere() : null;
  const there = await openSide(sides.there, {}, opened);
  const here = first ?? (await openHere());
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

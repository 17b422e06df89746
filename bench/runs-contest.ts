import { cpuUsOf, medianCosts, type Costs } from "./costs.ts";
import { measureDrain, type Contender, type Drain, type DrainTiming } from "./runs-drain.ts";
import type { EngineName, Work } from "./runs-engine.ts";
import { median, type Latencies } from "./runs-latency.ts";
import { ourContender, type BlueprintKey, type RunStage } from "./runs-ours.ts";
import { openPeer } from "./runs-peers.ts";

/** The same work for all: who takes part. */
interface Group {
  readonly id: GroupId;
  readonly title: string;
  readonly work: Work;
  readonly ours: BlueprintKey;
  readonly peers: readonly EngineName[];
}

export type GroupId = "noop" | "steps";

export const GROUPS: readonly Group[] = [
  {
    id: "noop",
    title: "no outside work",
    work: { steps: 0, gets: false },
    ours: "noop",
    peers: ["sql", "graphile-worker", "pg-boss", "dbos"],
  },
  {
    id: "steps",
    title: "three steps, each a GET",
    work: { steps: 3, gets: true },
    ours: "steps",
    peers: ["sql", "graphile-worker", "pg-boss", "dbos"],
  },
];

const TITLES: Record<EngineName, string> = {
  sql: "SQL by hand, the limit",
  "graphile-worker": "graphile-worker",
  "pg-boss": "pg-boss",
  dbos: "DBOS",
};

/** Runs a second, before anything was measured: how large the first backlog is. */
const FIRST_GUESSES: Record<EngineName | "ours", number> = {
  ours: 400,
  sql: 12_000,
  "graphile-worker": 12_000,
  "pg-boss": 8_000,
  dbos: 700,
};

export interface ContestOptions extends DrainTiming {
  readonly rounds: number;
  readonly workers: readonly number[];
  readonly groups: readonly GroupId[];
  readonly peers: readonly EngineName[];
  readonly lightRate: number;
  readonly lightSeconds: number;
  /** Runs at once in one worker process of ours, of graphile-worker and of DBOS. */
  readonly concurrency: number;
  readonly targetUrl: string;
}

/** One kind of worker at one kind of work, by the number of its processes. */
export interface ContestRow {
  readonly group: GroupId;
  readonly who: EngineName | "ours";
  readonly title: string;
  readonly drains: readonly {
    readonly workers: number;
    readonly perSecond: number;
    readonly costs: Costs;
    readonly otherCores: number;
  }[];
  /** Of the rounds, in their order, so that what was measured next to each other can be compared. */
  readonly rounds: readonly (readonly Drain[])[];
  readonly light: Latencies | null;
}

interface Participant {
  readonly group: Group;
  readonly who: EngineName | "ours";
  readonly contender: Contender;
}

/** Rounds in which all take turns: what else the machine does meets all of them. */
export async function runContest(
  stage: RunStage,
  options: ContestOptions,
  say: (text: string) => void,
): Promise<readonly ContestRow[]> {
  await using opened = new AsyncDisposableStack();
  const participants = await openParticipants(stage, options, opened);
  const measured = participants.map(() => options.workers.map((): Drain[] => []));
  for (let round = 0; round < options.rounds; round++) {
    for (const [place, workers] of options.workers.entries()) {
      for (const [index, { contender, who }] of participants.entries()) {
        const drain = await measureDrain(contender, workers, options, FIRST_GUESSES[who]);
        measured[index]?.[place]?.push(drain);
        say(
          `round ${round + 1}, ${workers} worker${workers === 1 ? "" : "s"}, ${contender.title}: ` +
            `${Math.round(drain.perSecond)}/s, ${Math.round(cpuUsOf(drain.costs))} µs of CPU and ${drain.costs.commits.toFixed(2)} commits a run`,
        );
      }
    }
  }
  const rows: ContestRow[] = [];
  for (const [index, { group, who, contender }] of participants.entries()) {
    const rounds = measured[index] ?? [];
    const light =
      options.lightSeconds > 0 ? await contender.runLightly(options.lightRate, options.lightSeconds) : null;
    if (light) say(`${contender.title}: p50 ${light.p50Ms.toFixed(1)} ms, p99 ${light.p99Ms.toFixed(1)} ms`);
    const drains = options.workers.map((workers, place) => ({ workers, ...medianOf(rounds[place] ?? []) }));
    rows.push({ group: group.id, who, title: contender.title, drains, rounds, light });
  }
  return rows;
}

async function openParticipants(
  stage: RunStage,
  options: ContestOptions,
  opened: AsyncDisposableStack,
): Promise<readonly Participant[]> {
  const { targetUrl, concurrency } = options;
  const participants: Participant[] = [];
  for (const group of GROUPS.filter(({ id }) => options.groups.includes(id))) {
    const contender = await ourContender(stage, group.ours, `Latchkey, ${group.title}`);
    participants.push({ group, who: "ours", contender });
    for (const engine of group.peers.filter((each) => options.peers.includes(each))) {
      const title = `${TITLES[engine]}, ${group.title}`;
      const peer = { engine, title, work: group.work, targetUrl, concurrency, server: stage.server };
      const contender = opened.use(await openPeer(peer));
      participants.push({ group, who: engine, contender });
    }
  }
  return participants;
}

function medianOf(drains: readonly Drain[]): Drain {
  const of = (value: (drain: Drain) => number): number => median(drains.map(value));
  return {
    perSecond: of((drain) => drain.perSecond),
    costs: medianCosts(drains.map(({ costs }) => costs)),
    otherCores: of((drain) => drain.otherCores),
  };
}

/** Runs a second of one by those of another, with as many workers: the median of the rounds; null when one was not measured. */
export function ratioOf(
  rows: readonly ContestRow[],
  one: readonly [GroupId, ContestRow["who"]],
  other: readonly [GroupId, ContestRow["who"]],
  workersAt: number,
): number | null {
  const find = ([group, who]: readonly [GroupId, ContestRow["who"]]): readonly Drain[] =>
    rows.find((row) => row.group === group && row.who === who)?.rounds[workersAt] ?? [];
  const others = find(other);
  const ratios = find(one).flatMap(({ perSecond }, round) => {
    const beside = others[round];
    return beside && beside.perSecond > 0 ? [perSecond / beside.perSecond] : [];
  });
  return ratios.length === 0 ? null : median(ratios);
}

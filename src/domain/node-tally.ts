/** `skipped`: its `when` was not true. `stopped`: it ended early, because its reader needed no more or the run ended. */
const STATES = ["done", "skipped", "stopped"] as const;

/** What a node did that leaves no journal entry of its own, because it has no effects: counts and times, no records. */
export interface NodeTally {
  readonly node: string;
  readonly state: (typeof STATES)[number];
  /** Milliseconds since 1970, by the database's clock. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Records of its output, and those without errors; null: it has no records, or the number is not known. */
  readonly total: number | null;
  readonly valid: number | null;
}

/** One line of the text that a row of the journal stores. */
export const tallyLine = ({ node, state, fromMs, toMs, total, valid }: NodeTally): string =>
  `${JSON.stringify([node, STATES.indexOf(state), fromMs, toMs - fromMs, total, valid])}\n`;

type Line = readonly [
  node: string,
  state: number,
  fromMs: number,
  tookMs: number,
  total: number | null,
  valid: number | null,
];

/**
 * The tallies of a run, one for each node. A node that was executed again after a pause or a crash has several: the first complete
 * one counts, because later nodes have used that output. Nodes that began in the same millisecond are in the order of `plan`.
 */
export function readTallies(texts: readonly string[], plan: readonly string[] = []): readonly NodeTally[] {
  const byNode = new Map<string, NodeTally>();
  for (const text of texts)
    for (const line of text.split("\n")) {
      if (line === "") continue;
      const [node, state, fromMs, tookMs, total, valid] = JSON.parse(line) as Line;
      const tally = {
        node,
        state: STATES[state] ?? "stopped",
        fromMs,
        toMs: fromMs + tookMs,
        total,
        valid,
      };
      const before = byNode.get(node);
      const isFirst = before !== undefined && before.state !== "stopped" && before.fromMs <= fromMs;
      if (!isFirst && (tally.state !== "stopped" || before === undefined || before.state === "stopped"))
        byNode.set(node, tally);
    }
  return [...byNode.values()].sort(
    (a, b) => a.fromMs - b.fromMs || plan.indexOf(a.node) - plan.indexOf(b.node),
  );
}

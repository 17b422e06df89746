import { readTallies } from "./node-tally.ts";

/** A step of the journal, as far as records are counted. */
interface CountedStep {
  readonly endedAt: Date | null;
  readonly recordsTotal: number | null;
  readonly recordsValid: number | null;
}

/**
 * The records with errors that a run has passed on, as its last node to end has counted them: of a step, or of a node without an
 * entry (`tallies`). Nodes of a flow begin together; of two that end together, the one that found more counts. null: none was counted.
 */
export function countWithErrors(steps: readonly CountedStep[], tallies: readonly string[]): number | null {
  const counted = [
    ...steps.map(({ endedAt, recordsTotal: total, recordsValid: valid }) => ({
      atMs: endedAt?.getTime() ?? null,
      total,
      valid,
    })),
    ...readTallies(tallies).map(({ toMs: atMs, total, valid }) => ({ atMs, total, valid })),
  ].flatMap(({ atMs, total, valid }) =>
    atMs === null || total === null || valid === null ? [] : [{ atMs, wrong: total - valid }],
  );
  const last = counted.toSorted((a, b) => a.atMs - b.atMs || a.wrong - b.wrong).at(-1);
  return last?.wrong ?? null;
}

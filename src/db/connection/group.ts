import { groupCommit } from "#lib/group-commit.ts";
import { isConnectionLost, isDatabaseError } from "./database-errors.ts";
import type { Database } from "./pool.ts";

const CALLS_MAX = 128;
const BATCHES_MAX = 2;
/** Together with the statement timeout, no request hangs longer than 10 s. docs/decisions/0026. */
const WAIT_MAX_MS = 2_000;

interface GroupedOptions<Call, Answer> {
  /** Handles a call of a failed batch: by default as a separate batch. */
  readonly alone?: (db: Database, call: Call) => Promise<Answer>;
  /** A call that could not be sent within this time is refused: requests need an answer, workers can wait. */
  readonly waitMaxMs?: number;
}

/** Combines concurrent calls of this process on one database into one statement. */
export function grouped<Call, Answer>(
  together: (db: Database, calls: readonly Call[]) => Promise<readonly Answer[]>,
  {
    alone = async (db, call) => (await together(db, [call]))[0] as Answer,
    waitMaxMs = WAIT_MAX_MS,
  }: GroupedOptions<Call, Answer> = {},
): (db: Database, call: Call) => Promise<Answer> {
  const groups = new WeakMap<Database, (call: Call) => Promise<Answer>>();
  const open = (db: Database): ((call: Call) => Promise<Answer>) =>
    groupCommit<Call, Answer>({
      together: async (calls) => await together(db, calls),
      alone: async (call) => await alone(db, call),
      mayGoAlone: (error) => isDatabaseError(error) && !isConnectionLost(error),
      clock: db.clock,
      callsMax: CALLS_MAX,
      batchesMax: BATCHES_MAX,
      waitMaxMs,
    });
  return async (db, call) => {
    let group = groups.get(db);
    if (!group) groups.set(db, (group = open(db)));
    return await group(call);
  };
}

/** The rows of a batch in the order of its calls; `at` counts from 1 (WITH ORDINALITY). */
export function inOrder<Row extends { readonly at: number }>(
  rows: readonly Row[],
  calls: readonly unknown[],
): readonly (Row | undefined)[] {
  const answers = Array.from<Row | undefined>({ length: calls.length });
  for (const row of rows) answers[row.at - 1] = row;
  return answers;
}

import { isConnectionLost } from "#db/connection/database-errors.ts";
import { listDoubtfulWrites, type DoubtfulWrite } from "#db/runs/run-writes.ts";
import { describeError } from "#lib/log.ts";
import { decideDoubtfulWrite } from "./decide-write.ts";

export interface WriteGroup {
  readonly accountId: string;
  readonly blueprint: string;
  readonly nodeId: string;
}

export interface DecidedGroup {
  /** Numbers of decided writes and their runs. */
  readonly writes: number;
  readonly runs: number;
  /** Number of writes that could not be decided: their run is active, or the update failed. They can be retried. */
  readonly left: number;
}

/**
 * Decides all current uncertain writes of one node, in all runs. Each is decided and audited on its own. A failure does not prevent the
 * others, unless the database is unreachable. Throws the first failure if nothing was decided.
 */
export async function decideDoubtfulGroup(
  services: Parameters<typeof decideDoubtfulWrite>[0],
  { accountId, ...of }: WriteGroup,
  decision: Parameters<typeof decideDoubtfulWrite>[2],
): Promise<DecidedGroup> {
  const runs = new Set<string>();
  const tried = new Set<string>();
  let writes = 0;
  let failure: { readonly error: unknown } | null = null;
  for (;;) {
    const all = await listDoubtfulWrites(services.db, { accountIds: [accountId], runId: null, of });
    const waiting = all.filter((write) => !tried.has(placeOf(write)));
    // A list is limited: the rest is in the next list.
    if (waiting.length === 0) {
      if (writes === 0 && failure !== null) throw failure.error;
      return { writes, runs: runs.size, left: all.length };
    }
    for (const [index, write] of waiting.entries()) {
      tried.add(placeOf(write));
      try {
        if (!(await decideDoubtfulWrite(services, write, decision))) continue;
        writes += 1;
        runs.add(write.runId);
      } catch (error) {
        services.log.warn({ runId: write.runId, ...describeError(error) }, "a write could not be decided");
        failure ??= { error };
        if (!isConnectionLost(error)) continue;
        if (writes === 0) throw failure.error;
        return { writes, runs: runs.size, left: waiting.length - index };
      }
    }
  }
}

const placeOf = ({ runId, ordinal }: DoubtfulWrite): string => `${runId} ${ordinal}`;

import { listDoubtfulWrites } from "#db/run-writes.ts";
import { decideDoubtfulWrite } from "./decide-write.ts";

export interface WriteGroup {
  readonly accountId: string;
  readonly blueprint: string;
  readonly nodeId: string;
}

/**
 * The operator's decision on all writes of one node that may have happened, in all runs: each is decided, and audited, by itself, and
 * those that come later are not. Gives how many writes of how many runs it was.
 */
export async function decideDoubtfulGroup(
  services: Parameters<typeof decideDoubtfulWrite>[0],
  { accountId, ...of }: WriteGroup,
  decision: Parameters<typeof decideDoubtfulWrite>[2],
): Promise<{ readonly writes: number; readonly runs: number }> {
  const runs = new Set<string>();
  let writes = 0;
  for (;;) {
    const waiting = await listDoubtfulWrites(services.db, { accountId, runId: null, of });
    let decided = 0;
    for (const write of waiting) {
      if (!(await decideDoubtfulWrite(services, write, decision))) continue;
      decided += 1;
      runs.add(write.runId);
    }
    writes += decided;
    // A list has an end: what is left of a long one is the next list.
    if (decided === 0) return { writes, runs: runs.size };
  }
}

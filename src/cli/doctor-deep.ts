import { join } from "node:path";
import type { Database } from "#db/connection/pool.ts";
import { INVARIANTS, type Invariant, type InvariantFinding } from "#domain/invariants.ts";
import type { Composition } from "./composition.ts";
import { openOwnSigning } from "./own-signing.ts";
import { openProgressBar } from "./progress-bar.ts";

/** One line of the doctor's report. */
export interface Finding {
  /** null: not checked. */
  readonly ok: boolean | null;
  readonly text: string;
}

/** A delete in progress ends within this time. */
const SECOND_LOOK_MS = 10_000;

/** docs/decisions/0025: every invariant with its violations, or the reason why it can't be checked here. */
export async function checkDeeply(composition: Composition, db: Database): Promise<readonly Finding[]> {
  const found = await inspect(composition, db);
  return (Object.keys(INVARIANTS) as Invariant[]).flatMap((invariant): readonly Finding[] => {
    const { holds, notChecked } = INVARIANTS[invariant];
    if (notChecked !== null)
      return [{ ok: null, text: `${invariant} ${holds}: not checked here, ${notChecked}` }];
    const own = found.filter((finding) => finding.invariant === invariant);
    if (own.length === 0) return [{ ok: true, text: `${invariant} ${holds}` }];
    return own.map((finding) => ({ ok: false, text: describe(finding) }));
  });
}

const describe = ({ invariant, place, problem, remedy }: InvariantFinding): string =>
  `${invariant} ${place}: ${problem}. Remedy: ${remedy}`;

async function inspect(composition: Composition, db: Database): Promise<readonly InvariantFinding[]> {
  const [{ checkInvariants }, { listForgottenScratch }] = await Promise.all([
    import("#actions/upkeep/check-invariants.ts"),
    import("#engine/outputs/sweep-scratch.ts"),
  ]);
  const { dataDir } = composition.config();
  const bars = new Map<string, ReturnType<typeof openProgressBar>>();
  const onProgress = (what: string, done: number, total: number): void => {
    const bar = bars.get(what) ?? openProgressBar(what);
    bars.set(what, bar);
    bar.show(done, total);
    if (done >= total) bar.end();
  };
  return await checkInvariants({
    db,
    blobs: await composition.openStore(),
    audit: openOwnSigning(composition).audit,
    checkpointFiles: [join(dataDir, "audit-checkpoints.ndjson")],
    tombstoneFiles: [join(dataDir, "tombstones.ndjson")],
    listForgottenScratch: async (before) => await listForgottenScratch(db, join(dataDir, "scratch"), before),
    secondLookMs: SECOND_LOOK_MS,
    onProgress,
  });
}

import type { NewEvidence } from "#domain/page-evidence.ts";
import { evidenceLine } from "#domain/page-evidence.ts";
import { randomBase62 } from "#lib/new-id.ts";
import { RunStopped } from "#engine/run-ended.ts";
import type { RunContext, RunJournal } from "#engine/run-context.ts";
import { streamOf } from "./small-bytes.ts";

/** Where the evidence of a run is kept: like the outputs of its steps, and purged with them. */
interface EvidencePlace {
  readonly services: Pick<RunContext["services"], "blobs">;
  readonly journal: Pick<RunJournal, "savePicture">;
  readonly run: Pick<RunContext["run"], "id" | "accountId">;
}

/** Stores the picture, and returns the line for the step's log. Throws RunStopped when the lease is lost. */
export async function keepEvidence(place: EvidencePlace, evidence: NewEvidence): Promise<string> {
  return evidenceLine({
    ...evidence,
    picture: evidence.picture && (await keepPicture(place, evidence.picture)),
  });
}

async function keepPicture({ services, journal, run }: EvidencePlace, png: Buffer): Promise<string> {
  const key = `steps/${run.accountId}/${run.id}/${randomBase62(16)}`;
  const blob = await services.blobs.put(key, streamOf(png));
  if (await journal.savePicture(blob)) return key;
  await services.blobs.remove([key]);
  throw new RunStopped("lease_lost");
}

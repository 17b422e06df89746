import { BlobMissing } from "#blobs/store.ts";
import type { DetailedRun } from "#db/operators/operator-runs.ts";
import type { RunInput } from "#db/runs/runs.ts";
import { Problem } from "#domain/problem.ts";
import type { BodyValue, TriggerBody } from "#domain/trigger-routing.ts";
import { must } from "#lib/assert.ts";
import type { Needs } from "#actions/services.ts";
import { stageUpload } from "./stage-upload.ts";

/** The metadata that a run was triggered with. */
export const metadataOf = (run: DetailedRun): Record<string, string> =>
  JSON.parse(run.metadata.toString("utf8")) as Record<string, string>;

/** A run as the body of a trigger. Files are copied; `staged` gets the keys of the copies. Throws Problem 409 for one that is gone. */
export async function rerunBody(
  services: Needs<"blobs">,
  rerun: {
    readonly run: DetailedRun;
    readonly account: { readonly id: string };
    readonly credentialIds: readonly string[];
    readonly inputs: readonly RunInput[];
  },
  staged: Set<string>,
): Promise<TriggerBody> {
  const { run, account, credentialIds, inputs } = rerun;
  const body = new Map<string, BodyValue>();
  for (const [name, text] of Object.entries(metadataOf(run))) body.set(name, { kind: "string", text });
  if (run.name !== null) body.set("run_name", { kind: "string", text: run.name.toString("utf8") });
  if (credentialIds.length > 0) body.set("credential_ids", { kind: "string", text: credentialIds.join(",") });
  for (const input of inputs) body.set(input.refKey, await valueOf(services, account.id, input, staged));
  return body;
}

async function valueOf(
  services: Needs<"blobs">,
  accountId: string,
  { kind, refKey, content, blobKey, filename, contentType }: RunInput,
  staged: Set<string>,
): Promise<BodyValue> {
  if (kind === "text") return { kind: "string", text: must(content, "the input").toString("utf8") };
  if (kind === "json")
    return { kind: "json", text: must(content, "the input").toString("utf8"), isNull: false, items: null };
  try {
    const bytes = services.blobs.open(must(blobKey, "the file's key"));
    const { key, sizeBytes, sha256 } = await stageUpload(services, accountId, bytes, (mine) => {
      staged.add(mine);
    });
    return {
      kind: "file",
      blobKey: key,
      filename: filename?.toString("utf8") ?? null,
      contentType: contentType?.toString("utf8") ?? null,
      sizeBytes,
      sha256,
    };
  } catch (error) {
    if (!(error instanceof BlobMissing)) throw error;
    throw new Problem("conflict", `The file of the input "${refKey}" is no longer in the object store.`);
  }
}

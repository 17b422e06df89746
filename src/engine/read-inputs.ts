import type { BlobStore } from "#blobs/store.ts";
import type { RunInput } from "#db/runs/runs.ts";
import type { Json } from "#domain/json.ts";
import type { Value } from "#domain/value.ts";
import { must } from "#lib/assert.ts";

/** The INPUT values of a run, by refKey, as the trigger stored them. */
export function inputValues(blobs: BlobStore, inputs: readonly RunInput[]): ReadonlyMap<string, Value> {
  return new Map(inputs.map((input) => [input.refKey, inputValue(blobs, input)]));
}

function inputValue(blobs: BlobStore, input: RunInput): Value {
  if (input.kind !== "file")
    return { form: "text", text: must(input.content, "an inline input").toString("utf8") };
  const key = must(input.blobKey, "a file's object");
  return {
    form: "file",
    filename: input.filename?.toString("utf8") ?? null,
    contentType: input.contentType?.toString("utf8") ?? null,
    sizeBytes: input.sizeBytes ?? 0,
    open: () => blobs.open(key),
  };
}

/** The value of `$inputs.<refKey>`: text, the JSON that the node parsed, or a file's name, type and size. */
export function inputVariable(value: Value): Json | undefined {
  if (value.form === "text") return value.text;
  if (value.form === "json") return value.json;
  if (value.form === "absent") return undefined;
  return { filename: value.filename, content_type: value.contentType, size_bytes: value.sizeBytes };
}

import { HANDLE_PREFIX, withoutHandles } from "#domain/handle-text.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import type { FileValue } from "#domain/value.ts";
import { NodeFailure } from "#nodes/define-node.ts";

/** The field of a record that holds its file (docs/blueprints.md#files). */
const FILE_FIELD = "file";

/** A record with its file: `filename`, `content_type`, `size_bytes` and `base64`. Throws NodeFailure when the field is taken. */
export function withFile(
  data: JsonObject,
  { filename, contentType }: Pick<FileValue, "filename" | "contentType">,
  bytes: Uint8Array,
  place: string,
): JsonObject {
  if (Object.hasOwn(data, FILE_FIELD))
    throw new NodeFailure(
      `${place}: the record already has a field \`${FILE_FIELD}\`; rename it in a \`map\` before this node.`,
    );
  const kept = bytesWithoutHandles(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  const base64 = kept.toString("base64");
  const file = { filename, content_type: contentType, size_bytes: kept.byteLength, base64 };
  return { ...data, [FILE_FIELD]: file };
}

/** As in all files, handles are removed: later they could not be resolved. */
function bytesWithoutHandles(bytes: Buffer): Buffer {
  return bytes.includes(HANDLE_PREFIX, 0, "latin1")
    ? Buffer.from(withoutHandles(bytes.toString("latin1")), "latin1")
    : bytes;
}

/** The file in a record; null: it has none. Throws NodeFailure if the field contains something else. */
export function fileIn(data: Json | undefined, place: string): FileValue | null {
  const held = isJsonObject(data) ? (data[FILE_FIELD] ?? null) : null;
  if (held === null) return null;
  const { base64, filename = null, content_type: contentType = null } = isJsonObject(held) ? held : {};
  if (typeof base64 !== "string" || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64) || base64.length % 4 !== 0)
    throw new NodeFailure(
      `${place}: the record's field \`${FILE_FIELD}\` is not a file from \`save: file\`, which has \`base64\`.`,
    );
  const bytes = Buffer.from(base64, "base64");
  return {
    form: "file",
    filename: typeof filename === "string" ? filename : null,
    contentType: typeof contentType === "string" ? contentType : null,
    sizeBytes: bytes.byteLength,
    open: async function* () {
      yield bytes;
    },
  };
}

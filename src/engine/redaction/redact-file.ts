import { isUtf8 } from "node:buffer";
import { limits } from "#domain/limits.ts";
import type { FileValue } from "#domain/value.ts";
import type { RunContext } from "#engine/run-context.ts";
import { streamOf } from "#engine/outputs/small-bytes.ts";

type File = Pick<FileValue, "open" | "sizeBytes">;

/**
 * Redacts a target's file. Text that fits into memory is redacted as a whole: JSON stays JSON. Other bytes are redacted as a stream, and
 * packed content (a ZIP, most PDF streams) when a node reads it.
 */
export function redactFile(file: File, { redact }: Pick<RunContext, "redact">): AsyncIterable<Uint8Array> {
  if (redact.isIdle) return file.open();
  return file.sizeBytes > limits.responseBytesMax ? redact.stream(file.open()) : cleanWhole(file, redact);
}

async function* cleanWhole(file: File, redact: RunContext["redact"]): AsyncIterable<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of file.open()) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  if (!isUtf8(bytes)) yield* redact.stream(streamOf(bytes));
  else yield Buffer.from(await redact.body(bytes.toString("utf8")), "utf8");
}

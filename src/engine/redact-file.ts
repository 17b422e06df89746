import { isUtf8 } from "node:buffer";
import type { FileValue } from "#domain/value.ts";
import type { RunContext } from "./run-context.ts";

/**
 * A file that a target gave, without the run's secrets. A text is cleaned as a whole; in other bytes a secret is found where it
 * stands as it is, and what is packed (a ZIP, most PDF streams) is cleaned when a node reads it.
 */
export async function* redactFile(
  file: Pick<FileValue, "open">,
  { redact }: Pick<RunContext, "redact">,
): AsyncIterable<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of file.open()) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  const encoding = isUtf8(bytes) ? "utf8" : "latin1";
  const text = bytes.toString(encoding);
  const clean = encoding === "utf8" ? redact.body(text) : redact.text(text);
  yield clean === text ? bytes : Buffer.from(clean, encoding);
}

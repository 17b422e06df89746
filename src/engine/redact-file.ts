import { isUtf8 } from "node:buffer";
import { limits } from "#domain/limits.ts";
import type { FileValue } from "#domain/value.ts";
import type { RunContext } from "./run-context.ts";

type File = Pick<FileValue, "open" | "sizeBytes">;

/**
 * A file that a target gave, without the run's secrets. A text is cleaned as a whole; in other bytes a secret is found where it
 * stands as it is, and what is packed (a ZIP, most PDF streams) is cleaned when a node reads it.
 */
export function redactFile(file: File, { redact }: Pick<RunContext, "redact">): AsyncIterable<Uint8Array> {
  if (redact.longest === 0) return file.open();
  return file.sizeBytes > limits.responseBytesMax ? cleanStream(file, redact) : cleanWhole(file, redact);
}

async function* cleanWhole(file: File, redact: RunContext["redact"]): AsyncIterable<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of file.open()) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  const encoding = isUtf8(bytes) ? "utf8" : "latin1";
  const text = bytes.toString(encoding);
  const clean = encoding === "utf8" ? redact.body(text) : redact.text(text);
  yield clean === text ? bytes : Buffer.from(clean, encoding);
}

/**
 * A file too long for memory, byte by byte as text of one byte a character: a secret is found in its UTF-8 form. The end of what
 * has come is held back, because a secret may begin there.
 */
async function* cleanStream(file: File, redact: RunContext["redact"]): AsyncIterable<Uint8Array> {
  let rest = "";
  for await (const chunk of file.open()) {
    const text = redact.bytes(rest + Buffer.from(chunk).toString("latin1"));
    const end = Math.max(0, text.length - redact.longest);
    rest = text.slice(end);
    if (end > 0) yield Buffer.from(text.slice(0, end), "latin1");
  }
  if (rest !== "") yield Buffer.from(rest, "latin1");
}

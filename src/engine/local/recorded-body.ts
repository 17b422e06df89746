import { isUtf8 } from "node:buffer";
import { withoutHandles } from "#domain/handle-text.ts";
import { decodeText } from "#outbound/read-body.ts";
import { streamOf } from "#engine/outputs/small-bytes.ts";
import { bytesWithoutHandles, type Redactor } from "#engine/redaction/redact.ts";

/** A body in a recording: text, or other bytes. */
export type RecordedBody = string | { readonly base64: string };

/** Text is converted to UTF-8; other bytes stay, except for readable secrets in them. */
export async function describeContent(
  bytes: Buffer,
  type: string,
  redact: Redactor,
  text: () => string = () => decodeText(bytes, type),
): Promise<RecordedBody> {
  if (isUtf8(bytes)) return withoutHandles(await redact.body(bytes.toString("utf8")));
  if (/^text\/|charset=/i.test(type)) return withoutHandles(await redact.body(text()));
  const clean: Uint8Array[] = [];
  for await (const chunk of redact.stream(streamOf(bytes))) clean.push(chunk);
  return { base64: bytesWithoutHandles(Buffer.concat(clean)).toString("base64") };
}

/** A header of an answer whose body is recorded. */
export const inUtf8 = (name: string, value: string): string =>
  name === "content-type" ? value.replace(/charset="?[^";\s]+"?/i, "charset=utf-8") : value;

import type { StreamedBody } from "#domain/http-exchange.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { randomBase62 } from "#lib/new-id.ts";
import { flowFrom, NodeFailure, type NodeContext } from "#nodes/define-node.ts";
import { fileOfFlow, type GivenFile } from "#nodes/given-file.ts";
import { kindOf } from "#nodes/records/expression-value.ts";
import type { HttpRequest } from "./http-config.ts";
import { fileIn } from "#nodes/records/record-file.ts";

/** A request's body with its content type. */
export interface Body {
  readonly type: string;
  readonly content: string | StreamedBody;
}

/** The output of a node as a file. */
const UNKNOWN_TYPE = "application/octet-stream";
/** RFC 9110, 8.3: a type with parameters. The caller's value may be anything. */
const MEDIA_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:\s*;[\t\u0020-\u007e]*)?$/;

/** The body from the node that `file` names; null: the request has no such body. Throws NodeFailure. */
export function fileBody(context: NodeContext, { file }: HttpRequest, record?: Json): Body | null {
  if (file === undefined) return null;
  const given = fileOf(context, file, record);
  if (given === null)
    throw new NodeFailure(
      file === context.node.config["for_each"]
        ? "request.file: the record has no file; use a `filter` to leave it out."
        : `request.file: the node "${file}" has no output; use \`when\` to skip this node.`,
    );
  return { type: typeOf(given), content: given };
}

/** The templates of the parts. A list is rendered as an object, so that an item without a value doesn't shift the others. */
export function partsTemplate({ multipart }: HttpRequest): JsonObject | undefined {
  return multipart === undefined
    ? undefined
    : Object.fromEntries(
        Object.entries(multipart).map(([name, part]) => [
          name,
          Array.isArray(part) ? Object.fromEntries(part.entries()) : part,
        ]),
      );
}

/** A multipart/form-data body (RFC 7578), streamed; null: the request has none. `values` are its rendered templates. */
export function partsBody(
  context: NodeContext,
  { multipart }: HttpRequest,
  values: JsonObject,
  record?: Json,
): Body | null {
  if (multipart === undefined) return null;
  const rendered = isJsonObject(values["multipart"]) ? values["multipart"] : {};
  const boundary = `latchkey-${randomBase62(24)}`;
  const sections = Object.entries(multipart).flatMap(([name, written]) => {
    const given = rendered[name];
    if (!Array.isArray(written))
      return partSections(context, { name, written, rendered: given, boundary, record });
    return written.flatMap((part: Json, index: number) => {
      const item = isJsonObject(given) ? given[String(index)] : undefined;
      return partSections(context, { name, written: part, rendered: item, boundary, record });
    });
  });
  const chunks = [...sections, Buffer.from(`--${boundary}--\r\n`)];
  return {
    type: `multipart/form-data; boundary=${boundary}`,
    content: {
      sections: chunks,
      sizeBytes: chunks.reduce((sum, chunk) => sum + sizeOf(chunk), 0),
      open: async function* () {
        for (const chunk of chunks) {
          if (chunk instanceof Uint8Array) yield chunk;
          else yield* chunk.open();
        }
      },
    },
  };
}

type Section = Uint8Array | StreamedBody;

const sizeOf = (section: Section): number =>
  section instanceof Uint8Array ? section.byteLength : section.sizeBytes;

interface Part {
  readonly name: string;
  /** From the document: only the document, never data, can refer to a file. */
  readonly written: Json;
  readonly rendered: Json | undefined;
  readonly boundary: string;
  readonly record: Json | undefined;
}

function partSections(context: NodeContext, part: Part): readonly Section[] {
  const { name, written, boundary } = part;
  const begin = `--${boundary}\r\nContent-Disposition: form-data; name="${quoted(name)}"`;
  if (isJsonObject(written)) return fileSections(context, part, begin);
  return textsOf(part).flatMap((text) => [Buffer.from(`${begin}\r\n\r\n${text}\r\n`)]);
}

function fileSections(context: NodeContext, part: Part, begin: string): readonly Section[] {
  const { file } = part.written as { readonly file: string };
  const given = fileOf(context, file, part.record);
  if (given === null) return [];
  const { filename, type } = isJsonObject(part.rendered) ? part.rendered : {};
  const place = `request.multipart.${part.name}`;
  const shown = scalar(filename, `${place}.filename`) ?? given.filename ?? file;
  const contentType = scalar(type, `${place}.type`) ?? typeOf(given);
  if (!MEDIA_TYPE.test(contentType)) throw new NodeFailure(`${place}.type is not a content type.`);
  const head = `${begin}; filename="${quoted(shown)}"\r\nContent-Type: ${contentType}\r\n\r\n`;
  return [Buffer.from(head), given, Buffer.from("\r\n")];
}

/** A template may yield a list: its name is repeated, as in a form. */
function textsOf({ name, rendered }: Part): readonly string[] {
  const items = Array.isArray(rendered) ? rendered : [rendered];
  return items.flatMap((item) => scalar(item, `request.multipart.${name}`) ?? []);
}

function scalar(value: Json | undefined, place: string): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value === "object")
    throw new NodeFailure(`${place} evaluates to ${kindOf(value)}; it must be a string.`);
  return String(value);
}

/** A name for use inside quotes, escaped as in browsers (HTML, multipart/form-data encoding algorithm). */
function quoted(name: string): string {
  return name.toWellFormed().replaceAll("\r", "%0D").replaceAll("\n", "%0A").replaceAll('"', "%22");
}

function typeOf({ contentType }: GivenFile): string {
  return contentType !== null && MEDIA_TYPE.test(contentType) ? contentType : UNKNOWN_TYPE;
}

/**
 * The output of a node as a file; null if it has none. Text and JSON values count as files, too. For the node of `for_each`, it
 * is the file in the record.
 */
function fileOf(context: NodeContext, source: string, record: Json | undefined): GivenFile | null {
  if (source === context.node.config["for_each"]) return fileIn(record, "The request");
  return fileOfFlow(flowFrom(context, source));
}

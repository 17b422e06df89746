import type { FastifyRequest } from "fastify";
import { headerRows } from "#domain/header-rows.ts";
import { limits } from "#domain/limits.ts";
import { Problem } from "#domain/problem.ts";
import type { StrategyField } from "#domain/strategy.ts";

/** Requests the same form in another language. */
export const AGAIN = "_again";
/** The form's own inputs, which are not fields of a strategy and do not count towards their limit. */
const OWN_NAMES: ReadonlySet<string> = new Set(["_csrf", AGAIN]);

/** The encoding of a strategy's form, and its size limit. */
export interface FormShape {
  readonly encoding: "application/x-www-form-urlencoded" | "multipart/form-data";
  readonly bytesMax: number;
  readonly fieldsMax: number;
}

/** The form is urlencoded. A form with files is multipart, the only encoding in which HTML sends files. */
export function formShape(fields: readonly StrategyField[]): FormShape {
  const files = fields.filter((field) => field.type === "file").length;
  const headers = fields.filter((field) => field.type === "headers");
  const rows = headers.flatMap((field) => headerRows(field.key));
  return {
    encoding: files > 0 ? "multipart/form-data" : "application/x-www-form-urlencoded",
    bytesMax: limits.formBodyBytesMax + files * limits.formFileBytesMax,
    fieldsMax: limits.formFieldsMax + rows.length * 2,
  };
}

/**
 * Reads a submitted form. For a repeated name, the first value counts. Values are kept unchanged: nothing is trimmed. A file is
 * read as text; bytes that are not UTF-8 become U+FFFD, which text files do not contain. Throws Problem 413 over the limits, 415
 * for another content type or a body that it doesn't describe.
 */
export async function readForm(
  request: FastifyRequest,
  shape: FormShape,
): Promise<ReadonlyMap<string, string>> {
  const contentType = request.headers["content-type"] ?? "";
  if (contentType.split(";", 1)[0]?.trim().toLowerCase() !== shape.encoding) throw unreadable();
  const body = await readBody(request, shape);
  const pairs =
    shape.encoding === "multipart/form-data"
      ? await readMultipart(body, contentType)
      : [...new URLSearchParams(body.toString("utf8"))];
  body.fill(0);
  const values = new Map<string, string>();
  let fields = 0;
  for (const [name, value] of pairs) {
    if (values.has(name)) continue;
    values.set(name, value);
    if (!OWN_NAMES.has(name)) fields += 1;
    if (fields > shape.fieldsMax) throw new FormTooLarge(null);
  }
  return values;
}

async function readBody(request: FastifyRequest, shape: FormShape): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  // destroyOnReturn would close the connection under the answer.
  for await (const chunk of request.raw.iterator({ destroyOnReturn: false })) {
    size += (chunk as Buffer).length;
    chunks.push(chunk as Buffer);
    if (size > shape.bytesMax) throw new FormTooLarge(largestOf(Buffer.concat(chunks), shape));
  }
  return Buffer.concat(chunks);
}

async function readMultipart(
  body: Buffer,
  contentType: string,
): Promise<readonly (readonly [name: string, value: string])[]> {
  // Uses the platform's own parser, because the body is complete and small.
  const headers = { "content-type": contentType };
  const form = await new Response(new Uint8Array(body), { headers }).formData().catch(() => null);
  if (form === null) throw unreadable();
  return await Promise.all(
    [...form].map(
      async ([name, part]) =>
        [name, typeof part === "string" ? part : decodeFile(await part.arrayBuffer())] as const,
    ),
  );
}

/** Removes the byte order mark that some editors write at the beginning. */
function decodeFile(bytes: ArrayBuffer): string {
  return Buffer.from(bytes)
    .toString("utf8")
    .replace(/^\ufeff/, "");
}

function unreadable(): Problem {
  return new Problem("validation_error", "The form was not sent in the expected encoding.", { status: 415 });
}

/** 413. */
export class FormTooLarge extends Problem {
  /** The name of the control with the largest value; null: the form has too many controls. */
  readonly control: string | null;

  constructor(control: string | null) {
    super("validation_error", "The form is too large.", { status: 413, headers: { Connection: "close" } });
    this.control = control;
  }
}

/** Of a form that was cut off: a value that is too large for it is the largest of what was read. */
function largestOf(body: Buffer, { encoding }: FormShape): string | null {
  const text = body.toString("latin1");
  body.fill(0);
  const parts =
    encoding === "multipart/form-data"
      ? text
          .split(/; name="/)
          .slice(1)
          .map((part) => [part.split('"', 1)[0] ?? "", part.length] as const)
      : text.split("&").map((pair) => [pair.split("=", 1)[0] ?? "", pair.length] as const);
  return parts.toSorted(([, a], [, b]) => b - a)[0]?.[0] ?? null;
}

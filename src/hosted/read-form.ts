import type { FastifyRequest } from "fastify";
import { Problem } from "#domain/problem.ts";

/**
 * A urlencoded form; of a repeated name the first value counts. Values are kept to the byte: nothing is trimmed. Throws
 * Problem 413 over the limits, 415 for another content type.
 */
export async function readForm(
  request: FastifyRequest,
  bounds: { readonly bytesMax: number; readonly fieldsMax: number },
): Promise<ReadonlyMap<string, string>> {
  const type = (request.headers["content-type"] ?? "").split(";", 1)[0]?.trim().toLowerCase();
  if (type !== "application/x-www-form-urlencoded") {
    throw new Problem("validation_error", "The form must be urlencoded.", { status: 415 });
  }
  const chunks: Buffer[] = [];
  let size = 0;
  // destroyOnReturn would close the connection under the answer.
  for await (const chunk of request.raw.iterator({ destroyOnReturn: false })) {
    size += (chunk as Buffer).length;
    if (size > bounds.bytesMax) throw tooLarge();
    chunks.push(chunk as Buffer);
  }
  const values = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(Buffer.concat(chunks).toString("utf8"))) {
    if (!values.has(name)) values.set(name, value);
    if (values.size > bounds.fieldsMax) throw tooLarge();
  }
  return values;
}

function tooLarge(): Problem {
  return new Problem("validation_error", "The form is too large.", {
    status: 413,
    headers: { Connection: "close" },
  });
}

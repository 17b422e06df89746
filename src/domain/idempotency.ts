import { hash } from "node:crypto";
import { limits } from "./limits.ts";

/** The reason for refusing a key, or null. `name`: what it was sent as. Spec, Limits: any non-empty string up to 255 characters (Unicode code points). */
export function checkIdempotencyKey(
  values: readonly string[],
  name = "The header Idempotency-Key",
): string | null {
  if (values.length > 1) return `${name} must be sent once.`;
  const key = values[0] ?? "";
  if (key.trim() === "") return `${name} must not be empty; omit it to send the request without one.`;
  if (Array.from(key).length > limits.idempotencyKeyCharactersMax) {
    return `${name} must have at most ${limits.idempotencyKeyCharactersMax} characters.`;
  }
  return null;
}

/** The raw key is not stored; the database has only its hash. */
export function hashIdempotencyKey(key: string): Buffer {
  return hash("sha256", key, "buffer");
}

/** The attributes of a multipart body's part that count for "the same body" (docs/decisions/0010, case 17). */
export interface PartPrint {
  readonly name: string;
  readonly indexInName: number;
  readonly filename: string | null;
  readonly contentType: string | null;
  readonly sha256: string;
}

export type BodyPrint =
  | { readonly kind: "none" }
  /** Canonical JSON text. */
  | { readonly kind: "json"; readonly canonical: string }
  | { readonly kind: "multipart"; readonly parts: readonly PartPrint[] };

/** Method, decoded path and body, which determine whether two requests are the same (docs/api.md#idempotency). */
export function fingerprint(method: string, path: readonly string[], body: BodyPrint): Buffer {
  return hash("sha256", JSON.stringify([method, path, body.kind]) + printOf(body), "buffer");
}

/**
 * The same from the bytes of a body, for a request that is repeated byte for byte. It includes the fingerprint that is stored beside it: if
 * a program that doesn't know this one replaces that, nothing matches.
 */
export function fingerprintOfBytes(
  method: string,
  path: readonly string[],
  bytes: Buffer,
  beside: Buffer,
): Buffer {
  const place = Buffer.from(JSON.stringify([method, path, "bytes"]));
  return hash("sha256", Buffer.concat([place, beside, bytes]), "buffer");
}

function printOf(body: BodyPrint): string {
  if (body.kind === "json") return body.canonical;
  if (body.kind === "none") return "";
  const texts = body.parts.map((part) =>
    JSON.stringify([part.name, part.indexInName, part.filename, part.contentType, part.sha256]),
  );
  return texts.sort().join("\n");
}

import type { FastifyRequest } from "fastify";

/** A query parameter; undefined when it is missing or empty (`?to=`). */
export const query = (request: FastifyRequest, name: string): string | undefined =>
  new URL(request.url, "http://portal.invalid").searchParams.get(name) || undefined;

/** A field of an urlencoded body; empty when it is missing or came twice. */
export function formField(request: FastifyRequest, name: string): string {
  const body: unknown = request.body;
  const value: unknown = typeof body === "object" && body !== null ? Reflect.get(body, name) : undefined;
  return typeof value === "string" ? value : "";
}

export function wholeNumber(text: string, min: number, max: number): number | undefined {
  const value = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  return value >= min && value <= max ? value : undefined;
}

// The cursor is the place of the first item of the next page, wrapped so that no client starts to count with it.
export const cursorAt = (index: number): string => Buffer.from(`at:${index}`).toString("base64url");

export function readCursor(cursor: string, count: number): number | undefined {
  const match = /^at:(\d+)$/.exec(Buffer.from(cursor, "base64url").toString("utf8"));
  return match?.[1] === undefined ? undefined : wholeNumber(match[1], 0, count - 1);
}

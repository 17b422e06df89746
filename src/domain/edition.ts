import type { Json, JsonObject } from "./json.ts";

/**
 * What the keys of a strategy or a Blueprint mean where a later program knows better. A version keeps the edition that it was
 * applied with, so that an upgrade changes no run; a document that says none is applied with the latest one.
 */
export const EDITIONS = [1, 2] as const;
export type Edition = (typeof EDITIONS)[number];
/** Of documents that say none. */
export const LATEST_EDITION: Edition = 2;

/** Of a stored document: those of the first edition say nothing. */
export const editionOf = ({ edition }: JsonObject): Edition => (edition === 2 ? 2 : 1);

const isVersioned = (document: JsonObject): boolean =>
  document["strategy"] !== undefined || document["blueprint"] !== undefined;

const without = ({ edition: _edition, ...rest }: JsonObject): { readonly [key: string]: Json } => rest;

/** A checked document as it is stored. Accounts have no edition. */
export function stampEdition(document: JsonObject): JsonObject {
  if (!isVersioned(document)) return document;
  const { edition = LATEST_EDITION } = document;
  return edition === 1 ? without(document) : { ...without(document), edition };
}

/** A stored document as people get it: applied again it means what it meant. */
export function pinEdition(document: JsonObject): JsonObject {
  return isVersioned(document) ? { ...without(document), edition: editionOf(document) } : document;
}

import type { Json, JsonObject } from "./json.ts";

/**
 * The meaning of a document's keys, where a later program interprets them differently. A version keeps the edition that it was
 * applied with, so that an upgrade changes no run; a document without an edition is applied with the latest one.
 */
export const EDITIONS = [1, 2] as const;
export type Edition = (typeof EDITIONS)[number];
/** The edition of documents that state none. */
export const LATEST_EDITION: Edition = 2;

/** The edition of a stored document; documents of the first edition do not state it. */
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

/** A stored document for output: applied again, it has the same meaning. */
export function pinEdition(document: JsonObject): JsonObject {
  return isVersioned(document) ? { ...without(document), edition: editionOf(document) } : document;
}

import { isJsonObject, texts, type Json, type JsonObject } from "./json.ts";

/** An endpoint as an account's document has it. */
export interface DocumentEndpoint {
  readonly url: string;
  readonly events: readonly string[];
  readonly description: string;
}

/** Reads the endpoints of an account document that `apply` has checked. */
export function readWebhooks(document: JsonObject): readonly DocumentEndpoint[] {
  const { webhooks } = document;
  if (!Array.isArray(webhooks)) return [];
  return webhooks.filter(isJsonObject).map((webhook) => ({
    url: canonicalUrl(webhook["url"]),
    events: webhook["events"] === undefined ? ["*"] : texts(webhook["events"]),
    description: typeof webhook["description"] === "string" ? webhook["description"] : "",
  }));
}

/** As it is stored; empty: it is not a URL. */
export const canonicalUrl = (value: Json | undefined): string =>
  typeof value === "string" && URL.canParse(value) ? new URL(value).href : "";

import { must } from "#lib/assert.ts";
import { parseDuration } from "./duration.ts";
import { isJsonObject, texts, type Json, type JsonObject } from "./json.ts";
import { limits } from "./limits.ts";

export interface AccountSettings {
  readonly slug: string;
  readonly name: string;
  /** Canonical origins that a `return_url` may have. */
  readonly allowedOrigins: readonly string[];
  /** Canonical origins of pages that may frame the embedded flow. */
  readonly embedOrigins: readonly string[];
  readonly sessionLifetimeMs: number;
  readonly retentionMs: number;
  /** The number of runs that may execute at once for this account. */
  readonly concurrency: number;
  /** Requests per API key; null: no limit. Polling has ten times the limit. */
  readonly rateLimit: { readonly perSecond: number; readonly burst: number } | null;
}

export const REVIEW_STEP_UPS = ["always", "before_writes", "never"] as const;
export type ReviewStepUp = (typeof REVIEW_STEP_UPS)[number];

/** The decisions on reviews that require a second factor: all, those after which the Blueprint may write, or none. */
export function readReviewStepUp(document: JsonObject): ReviewStepUp {
  return REVIEW_STEP_UPS.find((each) => each === document["review_step_up"]) ?? "before_writes";
}

/** Whether changes of the origins that credentials may be sent to need two admins. This is the document's value; the signed row decides. */
export function readTwoPerson(document: JsonObject): boolean {
  return document["two_person"] === true;
}

const text = (value: Json | undefined): string | null => (typeof value === "string" ? value : null);

/** Reads an account document that `apply` has checked. */
export function readAccount(document: JsonObject): AccountSettings {
  const slug = must(text(document["account"]), "account");
  const origins = document["allowed_origins"];
  const embedOrigins = document["embed_origins"] ?? origins;
  const canonical = (value: Json | undefined) => texts(value).map((origin) => new URL(origin).origin);
  const duration = (value: Json | undefined, fallback: number) =>
    value === undefined ? fallback : must(parseDuration(value), "a checked duration");
  return {
    slug,
    name: text(document["name"]) ?? slug,
    allowedOrigins: canonical(origins),
    embedOrigins: canonical(embedOrigins),
    sessionLifetimeMs: duration(document["session_lifetime"], limits.sessionLifetimeMs),
    retentionMs: duration(document["retention"], limits.retentionMs),
    concurrency:
      typeof document["concurrency"] === "number" ? document["concurrency"] : limits.accountConcurrency,
    rateLimit: readRateLimit(document["rate_limit"]),
  };
}

function readRateLimit(value: Json | undefined): AccountSettings["rateLimit"] {
  if (value === "off") return null;
  const given = isJsonObject(value) ? value : {};
  const whole = (key: string, fallback: number): number => {
    const number = given[key];
    return typeof number === "number" ? number : fallback;
  };
  const { perSecond, burst } = limits.rateLimit;
  return { perSecond: whole("per_second", perSecond), burst: whole("burst", burst) };
}

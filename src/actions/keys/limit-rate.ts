import { networkOf } from "#domain/client-address.ts";
import { limits } from "#domain/limits.ts";
import { Problem } from "#domain/problem.ts";
import type { Rate, Taken } from "#lib/token-bucket.ts";
import type { Caller, Needs } from "#actions/services.ts";

/** `polls`: reads of sessions and run status, which have a separate bucket, ten times as large. */
export type RequestKind = "calls" | "polls";

/** The state of a bucket after a request that was allowed. */
export interface Allowance {
  readonly policy: RequestKind;
  readonly rate: Rate;
  readonly taken: Taken;
}

/**
 * Takes a token of the caller's API key; null when its account has no limit. Polling as the interface recommends never meets
 * the limit (docs/api.md#rate-limits). Throws Problem 429.
 */
export function limitRate(services: Needs<"buckets">, caller: Caller, kind: RequestKind): Allowance | null {
  const { rateLimit } = caller.account;
  if (rateLimit === null) return null;
  const factor = kind === "polls" ? limits.pollsPerRequest : 1;
  const rate = { perSecond: rateLimit.perSecond * factor, burst: rateLimit.burst * factor };
  const taken = services.buckets.take(`${kind}/${caller.keyId}`, rate);
  if (!taken.allowed) throw limited(rate, kind, taken);
  return { policy: kind, rate, taken };
}

/** Counts a failed authentication of a client; too many of them are answered `429` instead of `401`. */
export function countFailedAuthentication(services: Needs<"buckets">, address: string): void {
  const taken = services.buckets.take(`address/${networkOf(address)}`, limits.failedAuthentications);
  if (!taken.allowed) throw limited(limits.failedAuthentications, "authentications", taken);
}

/** Takes a token of an operator's session, or of a program with an operator token. Throws Problem 429. */
export function limitOperator(services: Needs<"buckets">, holder: string): void {
  const taken = services.buckets.take(`operator/${holder}`, limits.operatorCalls);
  if (!taken.allowed) throw limited(limits.operatorCalls, "operator", taken);
}

/** Counts an end user's form before it is read: by address and, once known, by link. Throws Problem 429. */
export function throttleForm(services: Needs<"buckets">, by: "address" | "link", name: string): void {
  const rate = limits.forms[by];
  // Separate stores, so that a flood of addresses does not evict links; IPv6 by network.
  const subject = by === "address" ? networkOf(name) : name;
  const taken = services.buckets.take(`form-${by}/${subject}`, rate);
  if (!taken.allowed) throw limited(rate, "forms", taken);
}

/**
 * Counts a login that is to be tried at the target. Guesses come from few addresses, or are aimed at one login name: `name`, a keyed hash of
 * it; null: the login has none. Throws Problem 429.
 */
export function limitTries(
  services: Needs<"buckets">,
  target: string,
  { client, name }: { readonly client: string; readonly name: string | null },
): void {
  // Separate stores, so that a flood of addresses does not evict names.
  // The address first: one that may not try must not use up the tries of somebody's name.
  const counted = [
    [`tries/${target}/${networkOf(client)}`, limits.loginTries] as const,
    ...(name === null ? [] : [[`tries-name/${target}/${name}`, limits.loginTriesOfName] as const]),
  ];
  for (const [bucket, rate] of counted) {
    const taken = services.buckets.take(bucket, rate);
    if (!taken.allowed) throw limited(rate, "logins", taken);
  }
}

function limited(rate: Rate, policy: string, taken: Taken): Problem {
  return new Problem(
    "rate_limit_exceeded",
    "Too many requests. Try again after the time in the header Retry-After.",
    {
      headers: {
        ...rateHeaders(rate, policy, taken),
        "Retry-After": String(Math.max(taken.retryAfterSeconds, 1)),
      },
    },
  );
}

/** The fields of the IETF draft "RateLimit header fields for HTTP": quota, window; remaining, seconds to the next token. */
export function rateHeaders(rate: Rate, policy: string, taken: Taken): Readonly<Record<string, string>> {
  return {
    "RateLimit-Policy": `"${policy}";q=${rate.burst};w=${Math.ceil(rate.burst / rate.perSecond)}`,
    RateLimit: `"${policy}";r=${taken.remaining};t=${taken.retryAfterSeconds}`,
  };
}

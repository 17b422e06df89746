import { countSignIn } from "#db/operators/operator-throttle.ts";
import { networkOf } from "#domain/client-address.ts";
import { limits } from "#domain/limits.ts";
import { Problem } from "#domain/problem.ts";
import type { Taken } from "#lib/token-bucket.ts";
import type { Needs } from "#actions/services.ts";
import { findAnyKnownBrowser, findKnownBrowser, type KnownBrowserCookies } from "./known-browser.ts";

/** Kinds of counters. Their names never collide. */
type CounterKind = "name" | "browser" | "password" | "second-factor";

const hashOf = (services: Needs<"signing">, kind: CounterKind, name: string): Uint8Array =>
  services.signing.operators.nameHash(`${kind}/${name}`);

/** Counts an attempt of a signed-in operator, before anything is compared. Returns the counter. Throws Problem 429. */
export async function throttleSecret(
  services: Needs<"db" | "signing">,
  kind: "password" | "second-factor",
  operatorId: string,
): Promise<Uint8Array> {
  const hash = hashOf(services, kind, operatorId);
  const { blockedMs } = await countSignIn(services.db, { hash, isUnknown: false });
  if (blockedMs > 0) throw tooMany(Math.ceil(blockedMs / 1_000));
  return hash;
}

/** The source of a sign-in attempt, as known before anything is compared. */
export interface Newcomer {
  readonly name: string;
  /** No operator has that name. */
  readonly isUnknown: boolean;
  readonly address: string;
  readonly knownBrowsers: KnownBrowserCookies;
}

/**
 * How an attempt is counted. `browser`: by the known browser of this operator only, so that strangers' attempts don't count for it
 * (OWASP, "device cookies"). `counted`: by name and address. `over`: beyond the limit; the attempt succeeds only with password and second
 * factor together, and reveals nothing otherwise.
 */
type Admission =
  | { readonly kind: "browser" | "counted"; readonly counter: Uint8Array }
  | { readonly kind: "over"; readonly seconds: number };

/** docs/operator-api.md#signing-in: attempts are limited by name and by address, never forever. Counts before anything is compared. */
export async function admitAttempt(
  services: Needs<"buckets" | "db" | "refusedSignIns" | "signing">,
  newcomer: Newcomer,
): Promise<Admission> {
  const { db, signing } = services;
  const { name, isUnknown, address } = newcomer;
  const browser = findKnownBrowser(signing.operators, name, newcomer.knownBrowsers);
  if (browser !== null) {
    const counter = hashOf(services, "browser", browser);
    const { blockedMs } = await countSignIn(db, { hash: counter, isUnknown: false });
    // A stolen cookie allows no more guesses than a name.
    if (blockedMs === 0) return { kind: "browser", counter };
  }
  const { allowed, retryAfterSeconds } = takeAddress(services, address);
  if (!allowed) return { kind: "over", seconds: Math.max(retryAfterSeconds, 1) };
  if (isUnknown) services.refusedSignIns.countUnknownName();
  const counter = hashOf(services, "name", name);
  const { blockedMs } = await countSignIn(db, { hash: counter, isUnknown });
  if (blockedMs > 0) return { kind: "over", seconds: Math.ceil(blockedMs / 1_000) };
  return { kind: "counted", counter };
}

const takeAddress = ({ buckets }: Needs<"buckets">, address: string): Taken =>
  buckets.take(`sign-in/${networkOf(address)}`, limits.signIns);

/** Counts anonymous requests: by known browser, otherwise by address. Throws Problem 429. */
export function throttleStranger(
  services: Needs<"buckets" | "signing">,
  { address, knownBrowsers }: Pick<Newcomer, "address" | "knownBrowsers">,
): void {
  const browser = findAnyKnownBrowser(services.signing.operators, knownBrowsers);
  if (browser !== null && services.buckets.take(`sign-in-browser/${browser}`, limits.signIns).allowed) return;
  throttleAddress(services, address);
}

/** Counts callbacks from the provider: by the browser's `state`, otherwise by address. Throws Problem 429. */
export function throttleArrival(services: Needs<"buckets">, state: string | null, address: string): void {
  if (state === null) return throttleAddress(services, address);
  refuseOver(services.buckets.take(`sign-in-state/${state}`, limits.signIns));
}

/** Counts command lines that ask to be signed in, by address. Throws Problem 429. */
export function throttleDevice({ buckets }: Needs<"buckets">, address: string): void {
  refuseOver(buckets.take(`device/${networkOf(address)}`, limits.deviceSignIns));
}

/** Counts the codes of command lines that an operator looks up: nobody can try them all (RFC 8628, 5.1). Throws Problem 429. */
export function throttleCodes({ buckets }: Needs<"buckets">, operatorId: string): void {
  refuseOver(buckets.take(`device-code/${operatorId}`, limits.deviceCodes));
}

/** Counts how often a command line asks for its token (RFC 8628, 3.5: slow_down). Throws Problem 429. */
export function throttlePoll({ buckets }: Needs<"buckets">, deviceHash: Uint8Array): void {
  refuseOver(
    buckets.take(`device-poll/${Buffer.from(deviceHash).toString("base64url")}`, limits.devicePolls),
  );
}

/** Counts step-ups at the provider. Throws Problem 429. */
export function throttleOperator({ buckets }: Needs<"buckets">, operatorId: string): void {
  refuseOver(buckets.take(`step-up/${operatorId}`, limits.signIns));
}

function throttleAddress(services: Needs<"buckets">, address: string): void {
  refuseOver(takeAddress(services, address));
}

function refuseOver({ allowed, retryAfterSeconds }: Taken): void {
  if (!allowed) throw tooMany(Math.max(retryAfterSeconds, 1));
}

export function tooMany(seconds: number): Problem {
  return new Problem("rate_limit_exceeded", `Too many attempts. Try again in ${seconds} s.`, {
    headers: { "Retry-After": String(seconds) },
  });
}

/** The refusal of a sign-in by password; the same for an unknown name. */
export function tooManySignIns(seconds: number): Problem {
  const message =
    `Too many attempts. Try again in ${seconds} s; ` +
    "if you have a second factor, you need not wait: enter its code with the password.";
  return new Problem("rate_limit_exceeded", message, {
    headers: { "Retry-After": String(seconds) },
    details: [{ message, code: "second_factor_required", field: "code" }],
  });
}

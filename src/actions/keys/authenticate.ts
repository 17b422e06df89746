import { hash } from "node:crypto";
import { findLiveKey, touchKey } from "#db/api-keys.ts";
import type { Database } from "#db/connection/pool.ts";
import { lacksScopeText, type KeyScope } from "#domain/key-scope.ts";
import { limits } from "#domain/limits.ts";
import { Problem } from "#domain/problem.ts";
import { isWellFormedApiKey } from "#lib/api-key.ts";
import { describeError } from "#lib/log.ts";
import type { Caller, Needs } from "#actions/services.ts";

/** Spec, Authentication 2: missing, malformed or invalid, all the same `401`. */
function unauthenticated(): Problem {
  return new Problem(
    "authentication_error",
    "Missing or invalid API key. Send the header `Authorization: Bearer <API_KEY>`.",
    {
      headers: { "WWW-Authenticate": "Bearer" },
    },
  );
}

/**
 * The caller behind the `Authorization` header values of a request; decided from the headers alone. A header that is missing,
 * repeated, of another scheme or with a malformed key costs no database query. Throws Problem 401.
 */
export async function authenticate(
  services: Needs<"db" | "log" | "signing">,
  authorization: readonly string[],
): Promise<Caller> {
  const match = authorization.length === 1 ? /^bearer +(\S+)$/i.exec(authorization[0] ?? "") : null;
  const key = match?.[1] ?? "";
  if (!isWellFormedApiKey(key)) throw unauthenticated();
  const caller = await findCaller(services, key);
  if (!caller) throw unauthenticated();
  noteUse(services, caller.keyId);
  return caller;
}

const CALLERS_MAX = 10_000;

interface KnownCaller {
  readonly caller: Promise<Caller | undefined>;
  untilMs: number;
}

const known = new WeakMap<Database, Map<string, KnownCaller>>();

/** The caller of an active key, cached briefly. Only active keys are cached; expiry takes effect immediately. */
async function findCaller(services: Needs<"db" | "signing">, key: string): Promise<Caller | undefined> {
  const callers = known.get(services.db) ?? new Map<string, KnownCaller>();
  known.set(services.db, callers);
  // Computing the keyed hash that is stored in the database would cost ten times as much.
  const name = hash("sha256", key, "base64");
  const sinceMs = performance.now();
  const recent = callers.get(name);
  if (recent && sinceMs < recent.untilMs) return await recent.caller;
  const asked = findLiveKey(services.db, services.signing.apiKeyHash(key));
  // Measured from the request, not the answer: however slow the database is, no answer is older than this.
  const entry: KnownCaller = { caller: asked, untilMs: sinceMs + limits.callerFreshMs };
  if (callers.size >= CALLERS_MAX) callers.delete(callers.keys().next().value ?? "");
  callers.set(name, entry);
  const live = await asked.catch(() => undefined);
  if (live)
    entry.untilMs = sinceMs + Math.min(limits.callerFreshMs, live.remainingMs ?? limits.callerFreshMs);
  else if (callers.get(name) === entry) callers.delete(name);
  return await asked;
}

const NOTE_EVERY_MS = 60_000;
const noted = new Map<string, number>();

/** Not awaited: the last use is only informative, and accurate to a minute. */
function noteUse(services: Needs<"db" | "log">, keyId: string): void {
  const nowMs = performance.now();
  if (nowMs < (noted.get(keyId) ?? 0)) return;
  if (noted.size >= CALLERS_MAX) noted.clear();
  noted.set(keyId, nowMs + NOTE_EVERY_MS);
  touchKey(services.db, keyId).catch((error: unknown) => {
    services.log.warn(describeError(error), "noting the last use of an API key failed");
  });
}

/** Spec, Authentication 3: "Valid key without access to the requested resource: 403". */
export function authorizeScope(caller: Caller, scope: KeyScope): void {
  if (caller.scopes === null || caller.scopes.includes(scope)) return;
  throw new Problem("authorization_error", lacksScopeText(scope));
}

/** Spec, Authentication 3; docs/api.md#authentication: keys limited to some Blueprints. */
export function authorizeBlueprint(caller: Caller, blueprintKey: string): void {
  if (caller.blueprintKeys !== null && !caller.blueprintKeys.includes(blueprintKey)) {
    throw new Problem("authorization_error", "The API key is not authorised for this Blueprint.");
  }
}

/** What concerns the whole account: a key that is limited to Blueprints may not read of the others. */
export function authorizeAccount(caller: Caller): void {
  if (caller.blueprintKeys === null) return;
  throw new Problem(
    "authorization_error",
    "The API key is limited to some Blueprints, and this concerns the whole account. Use a key without that limit.",
  );
}

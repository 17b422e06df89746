import { findLiveKey, touchKey } from "#db/api-keys.ts";
import { Problem } from "#domain/problem.ts";
import { isWellFormedApiKey } from "#lib/api-key.ts";
import { describeError } from "#lib/log.ts";
import type { Caller, Services } from "./services.ts";

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
 * doubled, of another scheme or with a key that can't be one costs no database query. Throws Problem 401.
 */
export async function authenticate(services: Services, authorization: readonly string[]): Promise<Caller> {
  const match = authorization.length === 1 ? /^bearer +(\S+)$/i.exec(authorization[0] ?? "") : null;
  const key = match?.[1] ?? "";
  if (!isWellFormedApiKey(key)) throw unauthenticated();
  const caller = await findLiveKey(services.db, services.signing.apiKeyHash(key));
  if (!caller) throw unauthenticated();
  // Nobody waits for it: when the key was last used is for the operator's eyes.
  touchKey(services.db, caller.keyId).catch((error: unknown) => {
    services.log.warn(describeError(error), "noting the last use of an API key failed");
  });
  return caller;
}

/** Spec, Authentication 3; design, page 1: keys limited to some Blueprints. */
export function authorizeBlueprint(caller: Caller, blueprintKey: string): void {
  if (caller.blueprintKeys !== null && !caller.blueprintKeys.includes(blueprintKey)) {
    throw new Problem("authorization_error", "The API key is not authorised for this Blueprint.");
  }
}

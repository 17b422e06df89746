import { countSignIn } from "#db/operators.ts";
import { networkOf } from "#domain/client-address.ts";
import { limits } from "#domain/limits.ts";
import { Problem } from "#domain/problem.ts";
import type { Services } from "#actions/services.ts";

/** Counts an attempt under a name before anything is compared. Throws Problem 429. */
export async function throttleSecret(services: Services, name: string): Promise<Uint8Array> {
  const nameHash = services.signing.operators.nameHash(name);
  const bounds = { free: limits.signInFree, waitMsMax: limits.signInWaitMsMax };
  const { blockedMs } = await countSignIn(services.db, nameHash, bounds);
  if (blockedMs > 0) throw tooMany(Math.ceil(blockedMs / 1_000));
  return nameHash;
}

/** Design, page 6, 5.10: "login throttle per account … and per IP". Throws Problem 429. */
export function throttleAddress(services: Services, address: string): void {
  const taken = services.buckets.take(`sign-in/${networkOf(address)}`, limits.signIns);
  if (!taken.allowed) throw tooMany(Math.max(taken.retryAfterSeconds, 1));
}

export function tooMany(seconds: number): Problem {
  return new Problem("rate_limit_exceeded", `Too many attempts. Try again in ${seconds} s.`, {
    headers: { "Retry-After": String(seconds) },
  });
}

import { limits } from "./limits.ts";

/**
 * What trying a submitted login came to, for strategies with `verify` (docs/decisions/0044). `unanswered`: the target neither accepted nor
 * refused it in time.
 */
export const LOGIN_CHECKS = ["accepted", "refused", "unanswered"] as const;
export type LoginCheck = (typeof LOGIN_CHECKS)[number];

interface Lockout {
  readonly after: number;
  readonly coolDownMs: number;
}

/** How many logins of one session a target may refuse in a row, and for how long the session then takes no further one. */
export const triesOf = (
  lockout: Lockout | null,
): { readonly tries: number; readonly coolDownMs: number } => ({
  // People mistype, and targets allow for that: more than a schedule is allowed.
  tries: Math.max(limits.loginTriesMin, lockout?.after ?? 0),
  coolDownMs: lockout?.coolDownMs ?? limits.lockout.coolDownMs,
});

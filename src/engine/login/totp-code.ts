import { setTimeout as sleep } from "node:timers/promises";
import { parseTotpSecret, totpCode } from "#domain/totp.ts";
import { LoginFailure } from "#strategies/define-login.ts";

/** With less time than this left in a step, it waits for the next one. docs/decisions/0021. */
const LEFT_MS_MIN = 5_000;
const STEPS_WAITED_MAX = 4;

/** A clock, and the time steps whose codes are unused. */
export interface TotpSteps {
  nowMs(): Promise<number>;
  /** False: the step was already taken. */
  take(fieldKey: string, step: number): Promise<boolean>;
}

/**
 * Returns an unused one-time code: its time step is taken in the database first, so that parallel runs of one credential never send the
 * same code twice. Uses the database's clock, adjusted by at most one step towards the target's clock. Waits for the next step when
 * needed.
 */
export async function nextTotpCode(
  steps: TotpSteps,
  fieldKey: string,
  stored: string,
  offsetMs: number,
  signal: AbortSignal,
): Promise<string> {
  const secret = parseTotpSecret(stored);
  if (!secret.ok) throw new LoginFailure(`the authenticator secret in "${fieldKey}" can't be used`);
  const periodMs = secret.secret.periodSeconds * 1_000;
  const boundedMs = Math.max(-periodMs, Math.min(offsetMs, periodMs));
  for (let waited = 0; waited <= STEPS_WAITED_MAX; waited++) {
    const { code, step, validForMs } = totpCode(secret.secret, (await steps.nowMs()) + boundedMs);
    if (validForMs >= LEFT_MS_MIN && (await steps.take(fieldKey, step))) return code;
    await sleep(validForMs + 50, undefined, { signal });
  }
  throw new LoginFailure(
    `no unused one-time code of "${fieldKey}" became available: too many runs log in with it at once`,
  );
}

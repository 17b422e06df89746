import { setTimeout as sleep } from "node:timers/promises";
import { parseTotpSecret, totpCode } from "#domain/totp.ts";
import { LoginFailure } from "#strategies/define-login.ts";

/** With less of a step left than this, the next one is waited for. docs/decisions/0021. */
const LEFT_MS_MIN = 5_000;
const STEPS_WAITED_MAX = 4;

/** A clock, and the time steps of which nobody has used a code before. */
export interface TotpSteps {
  nowMs(): Promise<number>;
  /** False: it was taken before. */
  take(fieldKey: string, step: number): Promise<boolean>;
}

/**
 * A one-time code that nobody has sent before: its time step is taken in the database before it is used, so that parallel
 * runs of one credential never send the same code twice. By the database's clock, moved by at most one step to where the
 * target's own clock seems to stand. Waits for the next step when needed.
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
    `no unused one-time code of "${fieldKey}" came free: too many runs log in with it at once`,
  );
}

import { createHash, timingSafeEqual } from "node:crypto";
import { Secret, TOTP } from "otpauth";
import type { PortalAccount } from "./accounts.ts";

export const WRONG_TRIES_MAX = 5;

export interface SignIn {
  checkPassword(username: string, password: string): "signed_in" | "code_needed" | "wrong" | "locked";
  /** `used`: right, but already accepted once (RFC 6238, 5.2). Does not count as a wrong try. */
  checkCode(username: string, code: string): "signed_in" | "wrong" | "used" | "locked";
  /** Of every account: the wrong tries that it ever saw, and whether it is locked now. */
  state(): Readonly<Record<string, { readonly wrong_tries: number; readonly locked: boolean }>>;
}

interface AccountState {
  readonly account: PortalAccount;
  readonly totp: TOTP | null;
  wrongTries: number;
  /** Also those that a right one has forgiven since. */
  wrongTriesEver: number;
  /** Time steps whose code was accepted; only those still inside the window are kept. */
  usedSteps: readonly number[];
}

/** Wrong passwords and wrong codes count together. Five lock the account until the portal restarts. */
export function createSignIn(accounts: readonly PortalAccount[]): SignIn {
  const states = new Map(accounts.map((account) => [account.username, initialState(account)]));
  return {
    checkPassword(username, password) {
      const state = states.get(username);
      if (!state) return "wrong";
      if (state.wrongTries >= WRONG_TRIES_MAX) return "locked";
      if (!sameText(state.account.password, password)) {
        countWrong(state);
        return "wrong";
      }
      // With a second factor the tries are forgiven only after the code: else a known password would allow endless codes.
      if (state.totp) return "code_needed";
      state.wrongTries = 0;
      return "signed_in";
    },
    checkCode(username, code) {
      const state = states.get(username);
      if (!state?.totp) return "wrong";
      if (state.wrongTries >= WRONG_TRIES_MAX) return "locked";
      const timestamp = Date.now();
      const delta = state.totp.validate({ token: code.replaceAll(" ", ""), timestamp, window: 1 });
      if (delta === null) {
        countWrong(state);
        return "wrong";
      }
      const now = state.totp.counter({ timestamp });
      if (state.usedSteps.includes(now + delta)) return "used";
      state.usedSteps = [...state.usedSteps.filter((step) => step >= now - 1), now + delta];
      state.wrongTries = 0;
      return "signed_in";
    },
    state: () =>
      Object.fromEntries(
        [...states].map(([username, { wrongTries, wrongTriesEver }]) => [
          username,
          { wrong_tries: wrongTriesEver, locked: wrongTries >= WRONG_TRIES_MAX },
        ]),
      ),
  };
}

function countWrong(state: AccountState): void {
  state.wrongTries += 1;
  state.wrongTriesEver += 1;
}

function initialState(account: PortalAccount): AccountState {
  const totp =
    account.totpSecret === null
      ? null
      : new TOTP({ secret: Secret.fromBase32(account.totpSecret), algorithm: "SHA1", digits: 6, period: 30 });
  return { account, totp, wrongTries: 0, wrongTriesEver: 0, usedSteps: [] };
}

// Digests have one length, so the comparison takes the same time for every guess.
function sameText(expected: string, given: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(expected), digest(given));
}

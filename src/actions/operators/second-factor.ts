import { readClock } from "#db/connection/clock.ts";
import {
  isRecoveryCode,
  takeOperatorTotpStep,
  takeRecoveryCode,
  type StoredOperator,
} from "#db/operators/operators.ts";
import type { Database } from "#db/connection/pool.ts";
import { encodeBase32, matchTotpCode } from "#domain/totp.ts";
import { must } from "#lib/assert.ts";
import type { OperatorKeys } from "#lib/signing.ts";
import type { Needs } from "#actions/services.ts";

/** The key of an operator's authenticator app. It is derived on demand and never stored. */
export function totpSecretOf(keys: OperatorKeys, operator: Pick<StoredOperator, "id" | "totpNonce">): string {
  return encodeBase32(keys.totpKey(operator.id, must(operator.totpNonce, "the nonce of a second factor")));
}

/** Removes spaces and hyphens. */
export const plainCode = (code: string): string => code.replace(/[\s-]/g, "");

/** Six digits; recovery codes begin with a letter. */
export const isAppCode = (code: string): boolean => /^\d{6}$/.test(plainCode(code));

const NOBODY = { id: "", totpNonce: Buffer.alloc(16) } as const;

/** Checks a code without consuming it, in constant work. Without an operator or a second factor the result is false. */
export async function isSecondFactor(
  { db, signing: { operators: keys } }: Needs<"db" | "signing">,
  operator: StoredOperator | undefined,
  code: string,
): Promise<boolean> {
  const asked = operator?.hasSecondFactor === true ? operator : NOBODY;
  const plain = plainCode(code);
  if (!isAppCode(code)) return await isRecoveryCode(db, asked.id, keys.recoveryHash(asked.id, plain));
  const step = matchTotpCode(totpSecretOf(keys, asked), plain, await readClock(db));
  return asked !== NOBODY && step !== undefined;
}

/**
 * Consumes a code of the operator's second factor or a recovery code: each counts once, even under concurrency. Runs inside the
 * transaction of the action that it authorises.
 */
export async function takeSecondFactor(
  tx: Database,
  keys: OperatorKeys,
  operator: StoredOperator,
  code: string,
): Promise<"app" | "recovery" | null> {
  const plain = plainCode(code);
  if (!isAppCode(code))
    return (await takeRecoveryCode(tx, operator.id, keys.recoveryHash(operator.id, plain)))
      ? "recovery"
      : null;
  const step = matchTotpCode(totpSecretOf(keys, operator), plain, await readClock(tx));
  return step !== undefined && (await takeOperatorTotpStep(tx, operator.id, step)) ? "app" : null;
}

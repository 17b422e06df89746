import { recordAudit } from "#db/audit-entries.ts";
import {
  deleteOldSessions,
  deleteSessionOfToken,
  insertOperatorSession,
} from "#db/operators/operator-sessions.ts";
import type { Database } from "#db/connection/pool.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { limits } from "#domain/limits.ts";
import type { SignInWay } from "#domain/operator.ts";
import type { OidcRefusal } from "#domain/problem.ts";
import { newId } from "#lib/new-id.ts";
import type { Needs } from "#actions/services.ts";

/** The browser of a sign-in. */
export interface NewcomerBrowser {
  readonly address: string;
  readonly userAgent: string;
  /** The cookie that it came with: that session ends, to prevent session fixation. */
  readonly oldToken: string | null;
}

/** Opens a session with its audit entry, inside the transaction that authenticated the operator. */
export async function openSession(
  services: Needs<"signing">,
  tx: Database,
  opened: {
    readonly operatorId: string;
    readonly browser: NewcomerBrowser;
    readonly token: string;
    readonly signedInBy: SignInWay;
    readonly isSteppedUp: boolean;
    readonly secondFactor: "app" | "recovery" | "provider" | null;
  },
): Promise<void> {
  const { operatorId, browser, signedInBy } = opened;
  const keys = services.signing.operators;
  await deleteOldSessions(tx, limits.operatorIdleMs);
  if (browser.oldToken !== null) await deleteSessionOfToken(tx, keys.sessionHash(browser.oldToken));
  const id = newId(ID_PREFIX.operatorSession);
  await insertOperatorSession(tx, {
    id,
    operatorId,
    tokenHash: keys.sessionHash(opened.token),
    lifetimeMs: limits.operatorSessionMs,
    isSteppedUp: opened.isSteppedUp,
    signedInBy,
    address: browser.address,
    userAgent: browser.userAgent.slice(0, 200),
  });
  await recordAudit(tx, services.signing.audit, {
    accountId: null,
    actor: { kind: "operator", id: operatorId },
    action: "operator.sign_in",
    subjectId: operatorId,
    detail: { session: id, by: signedInBy, second_factor: opened.secondFactor, address: browser.address },
  });
}

/** Records the refusal: with an audit entry for an operator, otherwise as part of a count. */
export async function recordRefused(
  { db, signing, refusedSignIns }: Needs<"db" | "refusedSignIns" | "signing">,
  operatorId: string | null,
  reason: OidcRefusal | "password" | "second_factor",
  address: string,
): Promise<void> {
  // For an unknown name, the password is checked first.
  if (operatorId === null)
    return refusedSignIns.count(null, reason === "second_factor" ? "password" : reason);
  await recordAudit(db, signing.audit, {
    accountId: null,
    actor: { kind: "service" },
    action: "operator.sign_in_failed",
    subjectId: operatorId,
    detail: { reason, address },
  });
}

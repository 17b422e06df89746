import { endReplacedKey, insertKey, lockKey, type LockedKey } from "#db/api-keys.ts";
import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import type { AuditActor } from "#domain/audit.ts";
import type { KeyScope } from "#domain/key-scope.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { newApiKey } from "#lib/api-key.ts";
import { must } from "#lib/assert.ts";
import { newId } from "#lib/new-id.ts";
import type { Signing } from "#lib/signing.ts";
import { OperatorError } from "#actions/operator-error.ts";

export interface RotationRequest {
  readonly keyId: string;
  /** How long the old key keeps working. 0: not at all. */
  readonly overlapMs: number;
  /** null: those of the old key. */
  readonly name: string | null;
  /** null: the same lifetime as the old key's. */
  readonly lifetimeMs: number | null;
  /** null: the old key's scopes, even if it was created before there were scopes. */
  readonly scopes: readonly KeyScope[] | null;
}

export interface RotatedKey {
  readonly id: string;
  /** The key itself, only in this result. */
  readonly key: string;
  readonly replaces: string;
  readonly replacedEndsAt: Date;
}

/**
 * Creates a second key and lets the first expire after an overlap, in one transaction (docs/decisions/0027). The new key has the old
 * one's account, scope and lifetime: a 90-day key is replaced by one for 90 days from now. Throws OperatorError.
 */
export async function rotateApiKey(
  db: Database,
  signing: Signing,
  request: RotationRequest,
  actor: AuditActor = { kind: "cli" },
): Promise<RotatedKey> {
  const { keyId, overlapMs } = request;
  const id = newId(ID_PREFIX.apiKey);
  return await db.transaction(async (tx) => {
    const old = await lockKey(tx, keyId);
    if (!old) {
      throw new OperatorError(
        `There is no API key ${keyId}. \`latchkey keys list\` shows the ids.`,
        "missing",
      );
    }
    refuseEnded(keyId, old);
    const key = newApiKey(old.isTest);
    await insertKey(tx, {
      id,
      accountId: old.accountId,
      name: request.name ?? old.name,
      hash: signing.apiKeyHash(key),
      blueprintKeys: old.blueprintKeys,
      scopes: request.scopes ?? old.scopes,
      lifetimeMs: request.lifetimeMs ?? old.lifetimeMs,
    });
    const replacedEndsAt = must(await endReplacedKey(tx, keyId, id, overlapMs), "the key that is locked");
    await recordAudit(tx, signing.audit, {
      accountId: old.accountId,
      actor,
      action: "key.rotate",
      subjectId: keyId,
      detail: {
        successor: id,
        overlap_ms: overlapMs,
        ...(request.scopes && { scopes: request.scopes.join(",") }),
      },
    });
    return { id, key, replaces: keyId, replacedEndsAt };
  });
}

/** A key has one successor: concurrent or repeated rotations must not create a key that nobody has. */
function refuseEnded(keyId: string, old: LockedKey): void {
  if (old.replacedBy !== null) {
    throw new OperatorError(
      `API key ${keyId} has already been rotated: ${old.replacedBy} replaces it. Rotate that one; or, if it is lost, ` +
        "revoke it and create another with `latchkey keys create`.",
    );
  }
  if (!old.isRevoked && !old.isExpired) return;
  throw new OperatorError(
    `API key ${keyId} ${old.isRevoked ? "is revoked" : `expired at ${old.expiresAt?.toISOString()}`}, and can't be rotated. ` +
      "Create another with `latchkey keys create`.",
  );
}

import { insertEntries, sealEntry } from "#db/audit-entries.ts";
import { readClockText } from "#db/connection/clock.ts";
import { grouped } from "#db/connection/group.ts";
import { deleteCredentials, lockForDelete } from "#db/credentials/credentials.ts";
import { isConnectionLost } from "#db/connection/database-errors.ts";
import type { Database } from "#db/connection/pool.ts";
import { passKeyPoints, type KeyedInsert } from "#db/keyed-inserts.ts";
import { findAccountOfCredential } from "#db/operators/operator-credentials.ts";
import { failIdleRunsOf } from "#db/runs/runs.ts";
import { pauseSchedulesOf } from "#db/schedules/schedule-fires.ts";
import type { AuditActor } from "#domain/audit.ts";
import { isId } from "#domain/ids.ts";
import { notFound } from "#domain/problem.ts";
import { must } from "#lib/assert.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import { failpoint } from "#lib/failpoint.ts";
import { describeError } from "#lib/log.ts";
import { recordOf, type Answer, type Claim } from "#actions/replay-or-run.ts";
import type { Needs } from "#actions/services.ts";
import type { Tombstone } from "./tombstones.ts";

type Deleting = Needs<"db" | "signing" | "log" | "tombstones">;

interface Deletion {
  readonly accountId: string;
  readonly actor: AuditActor;
  readonly id: string;
  readonly tombstone: Tombstone;
  /** For the audit log. */
  readonly reason?: "login_refused" | "session_over";
}

interface Deleted {
  readonly answer: Answer;
  readonly failedRunIds: readonly string[];
}

const NO_CONTENT: Answer = { status: 204, body: "" };

/**
 * `DELETE /credentials/{credentialId}` of both APIs, inside the caller's transaction: the sealed secret, its data key and its cached
 * logins are deleted with it; queued runs that need it fail, running ones stop at their next node boundary, and schedules with it pause. It always
 * succeeds: a user's disconnect can't be blocked (docs/decisions/0024). Throws Problem 404.
 */
export async function deleteCredential(
  services: Needs<"signing">,
  tx: Database,
  deletion: Deletion,
): Promise<Deleted> {
  if (!isId("credential", deletion.id)) throw notFound("Credential");
  const [failedRunIds] = await deleteAll(services.signing.audit, tx, [deletion]);
  if (!failedRunIds) throw notFound("Credential");
  return { answer: NO_CONTENT, failedRunIds };
}

/**
 * The same with the deletes of concurrent requests and the claims of their keys, in one transaction. null: nothing was deleted, and the
 * request needs a transaction of its own, which reports the reason.
 */
export async function deleteCredentialTogether(
  services: Needs<"db" | "signing">,
  deletion: Deletion,
  claim: Claim | null,
): Promise<Deleted | null> {
  if (!isId("credential", deletion.id)) return null;
  const record = claim && recordOf(services, claim, NO_CONTENT);
  const failedRunIds = await deleteGrouped(services.db, {
    ...deletion,
    record,
    audit: services.signing.audit,
  });
  return failedRunIds && { answer: NO_CONTENT, failedRunIds };
}

type GroupedDeletion = Deletion & KeyedInsert & { readonly audit: AuditKeys };

/** A group does not wait for the locks of one delete: its key, its schedules, its runs. */
const GROUP_LOCK_TIMEOUT_MS = 100;

const deleteGrouped = grouped<GroupedDeletion, readonly string[] | null>(
  async (db, calls) => {
    // Of several requests for one credential, the others find it deleted.
    const first = [...new Map(calls.toReversed().map((call) => [call.id, call])).values()];
    const failed = await db.transaction(
      async (tx) => {
        const locked = await lockForDelete(tx, first);
        const mine = first.filter(({ id }) => locked.has(id));
        if (mine.length === 0) return new Map<GroupedDeletion, readonly string[]>();
        const failedRunIds = await deleteAll(must(mine[0], "a group has calls").audit, tx, mine);
        for (const { record } of mine) if (record !== null) await passKeyPoints();
        return new Map(mine.map((call, index) => [call, must(failedRunIds[index], "it is locked")]));
      },
      { settle: true, lockTimeoutMs: GROUP_LOCK_TIMEOUT_MS },
    );
    return calls.map((call) => failed.get(call) ?? null);
  },
  { alone: async () => null },
);

/** For each of them the runs that failed because of it; null: there is no such credential. */
async function deleteAll(
  audit: AuditKeys,
  tx: Database,
  deletions: readonly Deletion[],
): Promise<readonly (readonly string[] | null)[]> {
  const ids = deletions.map(({ id }) => id);
  const of = (id: string): Deletion =>
    must(
      deletions.find((each) => each.id === id),
      "a credential that is deleted",
    );
  // First, because a schedule's row is also locked before its credentials when it begins a run.
  const schedules = await pauseSchedulesOf(tx, deletions);
  const deleted = await deleteCredentials(tx, deletions);
  if (deleted.size === 0) return deletions.map(() => null);
  const failed = await failIdleRunsOf(tx, ids);
  await failpoint("credential.after_delete");
  const now = await readClockText(tx);
  const pauses = schedules.map(({ id, credentialId }) => {
    const { accountId, actor } = of(credentialId);
    const detail = { reason: "credential_deleted" };
    return sealEntry(audit, { accountId, actor, action: "schedule.pause", subjectId: id, detail }, now);
  });
  const receipts = deletions
    .filter(({ id }) => deleted.has(id))
    .map(({ accountId, actor, id, reason }) => {
      const detail = reason === undefined ? {} : { detail: { reason } };
      return sealEntry(
        audit,
        { accountId, actor, action: "credential.delete", subjectId: id, ...detail },
        now,
      );
    });
  await insertEntries(tx, [...pauses, ...receipts]);
  // Done last, so that as little as possible can fail afterwards.
  await Promise.all(
    receipts.map(async (receipt) => {
      const { accountId, tombstone } = of(must(receipt.subjectId, "the credential"));
      await tombstone.write(accountId, receipt);
    }),
  );
  await failpoint("credential.after_tombstone");
  return deletions.map(({ id }) =>
    deleted.has(id) ? failed.filter(({ credentialId }) => credentialId === id).map((run) => run.id) : null,
  );
}

/** Deletes a credential of any account, for operators. Returns the runs that failed because of it. Throws Problem 404. */
export async function deleteCredentialAs(
  services: Deleting,
  actor: AuditActor,
  id: string,
): Promise<readonly string[]> {
  const accountId = isId("credential", id) ? await findAccountOfCredential(services.db, id) : undefined;
  if (accountId === undefined) throw notFound("Credential");
  const deletion = { accountId, actor, id, tombstone: services.tombstones.of(id) };
  const inOwn = async (tx: Database): Promise<Deleted> => await deleteCredential(services, tx, deletion);
  const { failedRunIds } = await services.db
    .transaction(inOwn, { settle: true })
    .catch(async (error: unknown) => {
      await withdrawTombstone(services, deletion.tombstone, error);
      throw error;
    });
  return failedRunIds;
}

/**
 * Called after a failed delete transaction. If the connection broke, it may have committed after all: then the line is kept.
 * Errors here are only logged: the caller gets the first error.
 */
export async function withdrawTombstone(
  services: Needs<"db" | "log">,
  tombstone: Tombstone,
  error: unknown,
): Promise<void> {
  if (isConnectionLost(error)) return;
  try {
    await tombstone.withdraw(services.db);
  } catch (failure) {
    services.log.warn(describeError(failure), "the tombstone of a failed delete could not be removed");
  }
}

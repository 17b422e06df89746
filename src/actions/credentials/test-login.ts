import { recordAudit } from "#db/audit-entries.ts";
import { findAccountById, type Account } from "#db/accounts.ts";
import { findStrategy } from "#db/config-documents.ts";
import { findActiveTestLogin, lockCredential } from "#db/runs/test-logins.ts";
import { insertRun, type NewRun } from "#db/runs/new-runs.ts";
import type { Database } from "#db/connection/pool.ts";
import type { AuditActor } from "#domain/audit.ts";
import { ID_PREFIX, isId } from "#domain/ids.ts";
import { notFound } from "#domain/problem.ts";
import type { QueueOptions } from "#domain/queue-options.ts";
import { TEST_LOGIN, TEST_LOGIN_SLOT } from "#domain/test-login.ts";
import { assert, must } from "#lib/assert.ts";
import { newId, newRunKey } from "#lib/new-id.ts";
import type { Signing } from "#lib/signing.ts";

export interface TestLogin {
  readonly id: string;
  readonly runKey: string;
  readonly accountId: string;
}

/** Inserts a run that only logs in, with a credential that the caller's transaction has locked or inserted. */
export async function insertLogin(
  tx: Database,
  {
    account,
    operatorId,
    credential,
    queue,
  }: {
    readonly account: Pick<Account, "id" | "retentionMs">;
    readonly operatorId: string | null;
    readonly credential: Omit<NewRun["credentials"][number], "slot">;
    readonly queue: QueueOptions | null;
  },
): Promise<TestLogin> {
  const run = { id: newId(ID_PREFIX.run), runKey: newRunKey(), accountId: account.id };
  const isMade = await insertRun(tx, {
    ...run,
    blueprintId: null,
    blueprintVersion: null,
    againOf: null,
    scheduleId: null,
    apiKeyId: null,
    operatorId,
    name: null,
    metadata: "{}",
    ignoredKeys: [],
    timeoutMs: TEST_LOGIN.timeoutMs,
    retentionMs: account.retentionMs,
    queue,
    group: null,
    traceparent: null,
    credentials: [{ slot: TEST_LOGIN_SLOT, ...credential }],
    inputs: [],
  });
  assert(isMade, "the credential is locked");
  return run;
}

/**
 * Starts a run that only logs in with the credential. It is queued and admitted like any other, so that only a worker opens the
 * credential, its logins stay sequential, and rejections count. While a test is in progress, it returns that run. Throws Problem 404.
 */
export async function testLogin(
  { db, signing }: { readonly db: Database; readonly signing: Signing },
  by: { readonly actor: AuditActor; readonly operatorId?: string | null },
  credentialId: string,
): Promise<TestLogin> {
  return await db.transaction(async (tx) => {
    const credential = isId("credential", credentialId) && (await lockCredential(tx, credentialId));
    if (!credential) throw notFound("Credential");
    const { accountId, strategyId } = credential;
    const underWay = await findActiveTestLogin(tx, credentialId);
    if (underWay) return { ...underWay, accountId };
    const account = must(await findAccountById(tx, accountId), "the credential's account");
    const { version, strategy } = must(
      await findStrategy(tx, accountId, strategyId),
      "the credential's strategy",
    );
    const { concurrency } = strategy;
    const run = await insertLogin(tx, {
      account,
      operatorId: by.operatorId ?? null,
      credential: { credentialId, strategyId, strategyVersion: version, concurrency },
      queue: null,
    });
    await recordAudit(tx, signing.audit, {
      accountId,
      actor: by.actor,
      action: "credential.test_login",
      subjectId: credentialId,
      runId: run.id,
      detail: { strategy: strategyId },
    });
    return run;
  });
}

import { recordAudit } from "#db/audit-entries.ts";
import { findAccountById } from "#db/accounts.ts";
import { findStrategy } from "#db/config-documents.ts";
import { findActiveTestLogin, lockCredential } from "#db/runs/test-logins.ts";
import { insertRun } from "#db/runs/new-runs.ts";
import type { Database } from "#db/connection/pool.ts";
import type { AuditActor } from "#domain/audit.ts";
import { ID_PREFIX, isId } from "#domain/ids.ts";
import { notFound } from "#domain/problem.ts";
import { TEST_LOGIN, TEST_LOGIN_SLOT } from "#domain/test-login.ts";
import { assert, must } from "#lib/assert.ts";
import { newId, newRunKey } from "#lib/new-id.ts";
import type { Signing } from "#lib/signing.ts";

export interface TestLogin {
  readonly id: string;
  readonly runKey: string;
  readonly accountId: string;
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
    const run = { id: newId(ID_PREFIX.run), runKey: newRunKey(), accountId };
    const isMade = await insertRun(tx, {
      ...run,
      blueprintId: null,
      blueprintVersion: null,
      againOf: null,
      scheduleId: null,
      apiKeyId: null,
      operatorId: by.operatorId ?? null,
      name: null,
      metadata: "{}",
      ignoredKeys: [],
      timeoutMs: TEST_LOGIN.timeoutMs,
      retentionMs: account.retentionMs,
      queue: null,
      group: null,
      traceparent: null,
      credentials: [
        {
          slot: TEST_LOGIN_SLOT,
          credentialId,
          strategyId,
          strategyVersion: version,
          concurrency: strategy.concurrency,
        },
      ],
      inputs: [],
    });
    assert(isMade, "the credential is locked");
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

import { deleteCredentialAs } from "#actions/credentials/delete-credential.ts";
import { accountIdsOf } from "#actions/operator-error.ts";
import type { Needs, Services } from "#actions/services.ts";
import { testLogin } from "#actions/credentials/test-login.ts";
import { unlockCredential } from "#actions/credentials/unlock-credential.ts";
import {
  findSeenCredential,
  listSeenCredentials,
  listSeenSessions,
  listUses,
  type SeenCredential,
  type SeenSession,
} from "#db/operators/operator-credentials.ts";
import type { Database } from "#db/connection/pool.ts";
import type { SessionStatus } from "#domain/credential-session.ts";
import type { CredentialState } from "#domain/credential-state.ts";
import { isId } from "#domain/ids.ts";
import { makePage, readPage } from "#domain/page-cursor.ts";
import { notFound } from "#domain/problem.ts";
import { readSessionMetadata } from "#domain/session-metadata.ts";
import { actorOf, operatorIdOf, type Principal } from "./operator-caller.ts";
import { customerOfLogin } from "./run-marks.ts";

interface AccountQuery {
  cursor?: string;
  limit?: number;
  account?: string;
}

const endOf = (row: { readonly id: string; readonly createdAt: Date }) => ({
  atMs: row.createdAt.getTime(),
  id: row.id,
});

const showCredential = (each: SeenCredential) => ({
  id: each.id,
  account: each.account,
  strategy: each.strategy,
  name: each.name,
  created_at: each.createdAt.toISOString(),
  login_rejections: each.rejections,
  locked_until: each.lockedUntil?.toISOString() ?? null,
  session_until: each.sessionUntil?.toISOString() ?? null,
  last_run_id: each.lastRunId,
  last_run_at: each.lastRunAt?.toISOString() ?? null,
  customer: customerOfLogin(each),
});

export const showSession = (each: SeenSession) => ({
  id: each.id,
  account: each.account,
  strategy: each.strategy,
  name: each.name,
  metadata: each.sessionMetadata === null ? null : readSessionMetadata(each.sessionMetadata),
  status: each.status,
  credential_id: each.credentialId,
  created_at: each.createdAt.toISOString(),
  expires_at: each.expiresAt.toISOString(),
  opened_at: each.openedAt?.toISOString() ?? null,
  completed_at: each.completedAt?.toISOString() ?? null,
  sign_in_failure: each.signInFailure,
  sign_in_failed_at: each.signInFailedAt?.toISOString() ?? null,
  customer: customerOfLogin(each),
  created_by: each.createdBy,
});

/** Throws Problem 422, OperatorError. */
export async function listCredentials(
  db: Database,
  query: AccountQuery & { strategy?: string; q?: string; state?: CredentialState },
  limit: readonly string[] | null,
) {
  const page = readPage(query);
  const filter = {
    accountIds: await accountIdsOf(db, query.account, limit),
    strategyId: query.strategy ?? null,
    text: query.q?.trim().toLowerCase() || null,
    state: query.state ?? null,
  };
  const rows = await listSeenCredentials(db, filter, page);
  return makePage(rows, page, endOf, showCredential);
}

/** The newest runs of a credential in which its uses are counted. */
const USES_AMONG = 200;

/** Throws Problem 404. */
export async function getCredential(db: Database, id: string) {
  const row = isId("credential", id) ? await findSeenCredential(db, id) : undefined;
  if (!row) throw notFound("Credential");
  const uses = await listUses(db, id, USES_AMONG);
  return {
    ...showCredential(row),
    session_id: row.sessionId,
    origins: [...(row.origins ?? [])],
    uses: uses.map((use) => ({
      blueprint: use.blueprint,
      runs: use.runs,
      completed: use.completed,
      failed: use.failed,
      login_failed: use.loginFailed,
      last_run_id: use.lastRunId,
      last_run_at: use.lastRunAt.toISOString(),
    })),
  };
}

/** Throws Problem 422, OperatorError. */
export async function listCredentialSessions(
  db: Database,
  query: AccountQuery & { state?: SessionStatus },
  limit: readonly string[] | null,
) {
  const page = readPage(query);
  const accountIds = await accountIdsOf(db, query.account, limit);
  const rows = await listSeenSessions(db, { accountIds, status: query.state ?? null }, page);
  return makePage(rows, page, endOf, showSession);
}

/** Throws Problem 404. */
export async function unlockCredentialOf(
  services: Needs<"db" | "signing">,
  caller: Principal,
  id: string,
): Promise<void> {
  const isKnown = isId("credential", id);
  if (!isKnown || !(await unlockCredential(services.db, services.signing, id, actorOf(caller))))
    throw notFound("Credential");
}

/** Throws Problem 404. */
export async function testLoginOf(
  services: Needs<"db" | "news" | "signing">,
  caller: Principal,
  id: string,
): Promise<{ id: string; run_key: string }> {
  const by = { actor: actorOf(caller), operatorId: operatorIdOf(caller) };
  const run = await testLogin(services, by, id);
  services.news.notifyRunnable([run.accountId]);
  return { id: run.id, run_key: run.runKey };
}

/** Like the API's delete, including the tombstone. Throws Problem 404. */
export async function deleteCredentialOf(services: Services, caller: Principal, id: string): Promise<void> {
  services.news.announce(await deleteCredentialAs(services, actorOf(caller), id));
}

import { setTimeout as sleep } from "node:timers/promises";
import { findAccountById } from "#db/accounts.ts";
import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import { completeEmbeddedSession, lockForSlot } from "#db/credentials/embedded-sessions.ts";
import {
  completeWithCandidate,
  countRefusedLogin,
  findLoginTry,
  insertCandidate,
  listLeftCandidates,
  lockLoginTry,
  type LoginTry,
} from "#db/credentials/login-candidates.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { limits } from "#domain/limits.ts";
import { triesOf, type LoginCheck } from "#domain/login-check.ts";
import { loginNameOf } from "#domain/login-name.ts";
import { must } from "#lib/assert.ts";
import { failpoint } from "#lib/failpoint.ts";
import { describeError } from "#lib/log.ts";
import { newId } from "#lib/new-id.ts";
import { deleteCredential, withdrawTombstone } from "#actions/credentials/delete-credential.ts";
import { insertLogin } from "#actions/credentials/test-login.ts";
import { limitTries } from "#actions/keys/limit-rate.ts";
import type { Needs } from "#actions/services.ts";
import {
  byEndUser,
  readHostedById,
  sealCredential,
  type HostedSession,
  type NewContent,
} from "./hosted-session.ts";

/** Before all other runs of the account: a person waits for it. */
const FIRST = { delayMs: null, priority: limits.runPriorityMax, expiresInMs: null };

/**
 * Seals an end user's login as the candidate of its session, and has a worker log in with it (docs/decisions/0044). A session has one
 * candidate at a time: a second submit meanwhile stores nothing, and waits for the same outcome. Throws Problem 429.
 */
export async function beginTry(
  services: Needs<"db" | "signing" | "vault" | "news" | "buckets">,
  { session, strategy }: HostedSession,
  content: NewContent,
  client: string,
): Promise<"checking" | "limited" | "closed"> {
  const { db, signing } = services;
  const { accountId, strategyId, strategyVersion } = session;
  const name = loginNameOf(strategy, content.values);
  const hashed = name === null ? null : signing.loginName([accountId, strategyId, name]);
  limitTries(services, `${accountId}/${strategyId}`, { client, name: hashed });
  const candidate = await sealCredential(services, session, newId(ID_PREFIX.credential), content);
  const isBegun = await db.transaction(async (tx) => {
    if (session.embeddedSessionId !== null && !(await lockForSlot(tx, session))) return false;
    if (!(await insertCandidate(tx, session, candidate))) return false;
    const account = must(await findAccountById(tx, accountId), "the session's account");
    const { concurrency } = strategy;
    const run = await insertLogin(tx, {
      account,
      operatorId: null,
      credential: { credentialId: candidate.id, strategyId, strategyVersion, concurrency },
      queue: FIRST,
    });
    const tried = byEndUser(session, "credential.verify", candidate.id);
    await recordAudit(tx, signing.audit, { ...tried, runId: run.id });
    await failpoint("session.after_candidate");
    return true;
  });
  if (!isBegun) {
    const now = stateOf(await readTry(db, session));
    return now === "checking" || now === "limited" ? now : "closed";
  }
  services.news.notifyRunnable([accountId]);
  return "checking";
}

/** `closed`: the session is not pending any more. */
export type TryState = "none" | "checking" | "refused" | "limited" | "closed";

function stateOf({ candidateId, isOpen, closedMs, check }: LoginTry): TryState {
  if (!isOpen) return "closed";
  if (candidateId !== null) return "checking";
  if (closedMs > 0) return "limited";
  return check === "refused" ? "refused" : "none";
}

const readTry = async (db: Database, session: HostedSession["session"]): Promise<LoginTry> =>
  must(await findLoginTry(db, session), "the session");

/** How the login of a session stands, as it is stored. Changes nothing. */
export async function readTryState({ db }: Needs<"db">, hosted: HostedSession): Promise<TryState> {
  return hosted.strategy.verify ? stateOf(await readTry(db, hosted.session)) : "none";
}

/** After how long a session that is `limited` takes a login again. */
export const readClosedMs = async ({ db }: Needs<"db">, { session }: HostedSession): Promise<number> =>
  (await readTry(db, session)).closedMs;

/** What a candidate has come to. `over`: its session can't be completed any more. null: nothing yet. */
function verdictOf({ isOpen, runStatus, isRefused, triedMs }: LoginTry): LoginCheck | "over" | null {
  if (!isOpen) return "over";
  if (runStatus === "completed") return "accepted";
  const hasEnded = runStatus === "failed" || runStatus === "cancelled";
  // A run that is not over by then continues, as a test login of the stored credential.
  if (!hasEnded && triedMs < limits.loginCheckMs) return null;
  return isRefused ? "refused" : "unanswered";
}

type Settling = Needs<"db" | "signing" | "log" | "tombstones" | "news">;

/**
 * How the login of a session stands. If its candidate has been tried, one transaction draws the consequence: the session is completed
 * with it, as by a submit, or it is erased. The first process that looks does so, so the outcome needs no process that survives.
 */
export async function settleTry(services: Settling, hosted: HostedSession): Promise<TryState> {
  const { db, tombstones, news } = services;
  const { session } = hosted;
  const seen = await readTry(db, session);
  const { candidateId } = seen;
  if (candidateId === null || verdictOf(seen) === null) return stateOf(seen);
  const tombstone = tombstones.of(candidateId);
  const inOwn = async (tx: Database): Promise<readonly string[]> => {
    const isFlowOver = session.embeddedSessionId !== null && !(await lockForSlot(tx, session));
    const now = await lockLoginTry(tx, session);
    if (now === undefined || now.candidateId !== candidateId) return [];
    const verdict = isFlowOver ? "over" : verdictOf(now);
    if (verdict === null) return [];
    if (verdict === "accepted" || verdict === "unanswered") {
      await keep(services, tx, hosted, candidateId, verdict);
      return [];
    }
    if (verdict === "refused") await countRefusedLogin(tx, session, triesOf(hosted.strategy.lockout));
    await failpoint("session.after_verdict");
    const { failedRunIds } = await deleteCredential(services, tx, {
      accountId: session.accountId,
      actor: { kind: "service" },
      id: candidateId,
      tombstone,
      reason: verdict === "refused" ? "login_refused" : "session_over",
    });
    return failedRunIds;
  };
  const failedRunIds = await db.transaction(inOwn, { settle: true }).catch(async (error: unknown) => {
    await withdrawTombstone(services, tombstone, error);
    throw error;
  });
  news.announce(failedRunIds);
  return stateOf(await readTry(db, session));
}

/** The candidate becomes the session's credential. */
async function keep(
  { signing }: Needs<"signing">,
  tx: Database,
  { session }: HostedSession,
  candidateId: string,
  check: Exclude<LoginCheck, "refused">,
): Promise<void> {
  await completeWithCandidate(tx, session, candidateId, check);
  const submitted = byEndUser(session, "credential.submit", candidateId);
  await recordAudit(tx, signing.audit, { ...submitted, detail: { ...submitted.detail, verify: check } });
  await failpoint("session.after_verdict");
  if (session.embeddedSessionId !== null) await completeEmbeddedSession(tx, session);
}

/** Waits for the outcome, but no longer than one request may. */
export async function followTry(services: Settling, hosted: HostedSession): Promise<TryState> {
  const until = performance.now() + limits.loginCheckWaitMs;
  for (;;) {
    const state = await settleTry(services, hosted);
    if (state !== "checking" || performance.now() >= until) return state;
    await sleep(limits.loginCheckPollMs);
  }
}

const BATCH = 100;

/** By each worker, every few seconds: candidates whose pages nobody looks at any more, and those of sessions that are over. */
export async function settleLeftTries(services: Settling): Promise<void> {
  const left = await listLeftCandidates(services.db, { afterMs: limits.loginCheckMs, limit: BATCH });
  for (const { accountId, id } of left) {
    try {
      await settleTry(services, await readHostedById(services, accountId, id));
    } catch (error) {
      // The others are not held up.
      services.log.warn({ sessionId: id, ...describeError(error) }, "a tried login could not be settled");
    }
  }
}

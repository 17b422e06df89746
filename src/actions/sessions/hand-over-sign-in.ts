import { setTimeout as sleep } from "node:timers/promises";
import {
  findProgress,
  handOverAnswer,
  recordOutcome,
  takeAnswer,
  type OAuthAttempt,
} from "#db/credentials/oauth.ts";
import { limits } from "#domain/limits.ts";
import { describeError } from "#lib/log.ts";
import { LoginFailure } from "#strategies/define-login.ts";
import { decryptWithKey, encryptWithKey } from "#vault/one-key.ts";
import { hashState } from "./begin-oauth.ts";
import {
  closedOutcome,
  completeSignIn,
  noteFailure,
  type FinishOutcome,
  type OAuthAnswer,
} from "./complete-sign-in.ts";
import { readHostedById, type HostedSession } from "./hosted-session.ts";
import type { Needs, Services } from "#actions/services.ts";

const LOOK_MS = { first: 50, last: 500 };

/**
 * For a process that can't open the client secret: another one exchanges the code, and this one waits for the outcome, so that the
 * end user sees the same pages. The outcome is stored in the database; if either process dies meanwhile, the end user signs in
 * again. `sealed` states the remedy when no process has taken it.
 */
export async function handOverSignIn(
  services: Needs<"db" | "log" | "signing">,
  hosted: HostedSession,
  attempt: OAuthAttempt,
  answer: OAuthAnswer,
  sealed: LoginFailure,
): Promise<FinishOutcome> {
  const { db, signing, log } = services;
  const { stateHash } = attempt;
  const plain = Buffer.from(JSON.stringify({ ...answer, parameters: answer.parameters.toString() }), "utf8");
  await handOverAnswer(
    db,
    stateHash,
    await encryptWithKey(signing.oauthAnswerKey(stateHash).reveal(), plain),
  );
  plain.fill(0);
  const until = performance.now() + limits.oauthHandOverMs;
  for (let lookMs = LOOK_MS.first; performance.now() < until; lookMs = Math.min(2 * lookMs, LOOK_MS.last)) {
    await sleep(lookMs);
    const progress = await findProgress(db, stateHash);
    if (progress === undefined || progress.isClosed) return await closedOutcome(services, hosted);
    if (progress.outcome !== null) return { kind: "retry", hosted, reason: progress.outcome };
  }
  // Withdrawn, so that no process takes it later.
  if (await takeAnswer(db, stateHash)) return await noteFailure(services, hosted, attempt, sealed);
  const fields = { sessionId: attempt.sessionId, strategyId: attempt.strategyId };
  log.warn(fields, "the process that took over a sign-in did not finish it in time");
  return { kind: "retry", hosted, reason: "failed" };
}

/** For a process that can open it: exchanges a code that was handed over, once, and stores the outcome in the database. Never throws. */
export async function finishHandedOver(services: Services, stateHash: Uint8Array): Promise<void> {
  const { db, log } = services;
  try {
    const taken = await takeAnswer(db, stateHash);
    if (taken === undefined) return;
    const { attempt } = taken;
    const hosted = await readHostedById(services, attempt.accountId, attempt.sessionId);
    try {
      const answer = await readAnswer(services, stateHash, taken.answer);
      await completeSignIn(services, hosted, attempt, answer).catch(
        async (error: unknown) => await noteFailure(services, hosted, attempt, error),
      );
    } catch (error) {
      await recordOutcome(db, stateHash, "failed");
      throw error;
    }
  } catch (error) {
    log.error(describeError(error), "a sign-in that was handed over could not be finished");
  }
}

async function readAnswer(
  { signing }: Needs<"signing">,
  stateHash: Uint8Array,
  encrypted: Uint8Array,
): Promise<OAuthAnswer> {
  const plain = await decryptWithKey(signing.oauthAnswerKey(stateHash).reveal(), encrypted);
  const { parameters, ...rest } = JSON.parse(Buffer.from(plain).toString("utf8")) as {
    readonly state: string;
    readonly parameters: string;
    readonly redirectUri: string;
  };
  plain.fill(0);
  if (!hashState(rest.state).equals(stateHash))
    throw new LoginFailure("the answer belongs to another sign-in");
  return { ...rest, parameters: new URLSearchParams(parameters) };
}

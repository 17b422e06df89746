import { claimKey, findAnswer, lookUpAnswer, storeAnswer, type StoredAnswer } from "#db/idempotency.ts";
import type { Database } from "#db/connection/pool.ts";
import type { KeyRecord } from "#db/keyed-inserts.ts";
import { hashIdempotencyKey } from "#domain/idempotency.ts";
import { isId } from "#domain/ids.ts";
import { limits } from "#domain/limits.ts";
import { Problem } from "#domain/problem.ts";
import { must } from "#lib/assert.ts";
import type { Clock } from "#lib/clock.ts";
import { failpoint } from "#lib/failpoint.ts";
import type { Needs } from "./services.ts";

/** An effect's answer. The only secret in it can be a session's token, which is never stored. */
export interface Answer {
  readonly status: number;
  /** The exact bytes, as text. */
  readonly body: string;
  readonly tokenOfSession?: string | undefined;
}

export interface IdempotentRequest {
  readonly accountId: string;
  /** null: the caller sent no key. */
  readonly key: string | null;
  /** The result of `findStored`, if the caller already has it. */
  readonly stored?: Stored | undefined;
  /** Called when there is a key. */
  fingerprint(): Buffer;
  /** The same from the bytes of the body (`fingerprintOfBytes`), with the fingerprint beside it. Missing: not known. */
  readonly fingerprintOfBytes?: ((beside: Buffer) => Buffer) | null;
}

/** The recorded answer for a key; null: none. */
export interface Stored {
  readonly answer: StoredAnswer | null;
}

/** A request with a key. */
interface Keyed {
  readonly accountId: string;
  readonly keyHash: Buffer;
  readonly fingerprint: Buffer;
  readonly bytesFingerprint: Buffer | null;
  readonly stored: Stored | undefined;
}

/** The data to claim a key. */
export interface Claim {
  readonly keyHash: Buffer;
  readonly fingerprint: Buffer;
  readonly bytesFingerprint: Buffer | null;
  readonly windowMs: number;
}

/**
 * An effect that can share a transaction with those of concurrent requests: it claims the key, stores its answer and commits.
 * null: it has done nothing (the key is taken, or something is locked) and must run alone. Throws the Problems of the effect.
 */
export type EffectTogether = (claim: Claim | null) => Promise<Answer | null>;

export interface Outcome {
  readonly answer: Answer;
  readonly replayed: boolean;
}

const LOCK_NOT_AVAILABLE = "55P03";
const WAIT_LEAST_MS = 1_000;

interface InProgress {
  readonly fingerprint: Buffer;
  readonly outcome: Promise<Outcome>;
}

// Duplicates of one process wait here, for the first one's answer, and hold no connection while they do. Those of other
// processes wait in the database, on the key's unique index.
const inProgress = new WeakMap<Database, Map<string, InProgress>>();

/** Looks up a key, so that a request can combine this with its other queries. */
export async function findStored(services: Needs<"db">, accountId: string, key: string): Promise<Stored> {
  const keyHash = hashIdempotencyKey(key);
  return { answer: (await lookUpAnswer(services.db, { accountId, keyHash })) ?? null };
}

/**
 * The recorded answer if the body has the same bytes as that of the first request, so that it need not be parsed. null: only the
 * fingerprint shows whether the requests are the same.
 */
export function replayIdentical(
  services: Needs<"signing">,
  stored: Stored | undefined,
  fingerprintOfBytes: (beside: Buffer) => Buffer,
): Outcome | null {
  const answer = stored?.answer;
  if (!answer?.bytesFingerprint?.equals(fingerprintOfBytes(answer.fingerprint))) return null;
  return { answer: replay(services, answer, answer.fingerprint), replayed: true };
}

/**
 * Runs the effect, its answer and its record in one transaction, or replays the recorded answer. Spec, Idempotency 2 to 4.
 * A refused or failed effect rolls everything back and records nothing (docs/decisions/0010).
 */
export async function replayOrRun(
  services: Needs<"db" | "signing">,
  request: IdempotentRequest,
  effect: (tx: Database) => Promise<Answer>,
  together: EffectTogether = async () => null,
): Promise<Outcome> {
  if (request.key === null) {
    const answer = await together(null);
    if (answer) return { answer, replayed: false };
    return { answer: await services.db.transaction(effect, { settle: true }), replayed: false };
  }
  const { accountId, stored } = request;
  const keyHash = hashIdempotencyKey(request.key);
  const fingerprint = request.fingerprint();
  const bytesFingerprint = request.fingerprintOfBytes?.(fingerprint) ?? null;
  const name = `${accountId}/${keyHash.toString("hex")}`;
  const mine = inProgressOf(services.db);
  const { clock } = services.db;
  const deadline = clock.now() + limits.idempotencyWaitMs;
  for (let first = mine.get(name); first; first = mine.get(name)) {
    const outcome = await settled(clock, first, deadline);
    if (outcome && first.fingerprint.equals(fingerprint)) return { answer: outcome.answer, replayed: true };
    if (outcome) break;
  }
  // A duplicate that has waited here for a failed request does not wait for the full time again in the database.
  const waitMs = Math.max(Math.ceil(deadline - clock.now()), WAIT_LEAST_MS);
  const outcome = replayOrClaim(
    services,
    { accountId, keyHash, fingerprint, bytesFingerprint, stored },
    waitMs,
    effect,
    together,
  );
  mine.set(name, { fingerprint, outcome });
  try {
    return await outcome;
  } finally {
    if (mine.get(name)?.outcome === outcome) mine.delete(name);
  }
}

function inProgressOf(db: Database): Map<string, InProgress> {
  const mine = inProgress.get(db) ?? new Map<string, InProgress>();
  inProgress.set(db, mine);
  return mine;
}

/** The answer of the first request; null if it was refused or failed and recorded nothing. Throws when it takes too long. */
async function settled(clock: Clock, first: InProgress, deadline: number): Promise<Outcome | null> {
  const limit = new AbortController();
  const late = clock.sleep(Math.max(deadline - clock.now(), 0), limit.signal).then(() => "late" as const);
  late.catch(() => {});
  try {
    const outcome = await Promise.race([first.outcome.catch(() => null), late]);
    if (outcome === "late") throw inUse();
    return outcome;
  } finally {
    limit.abort();
  }
}

/**
 * A recorded answer is replayed; a free key is claimed together with others; otherwise the request runs alone: it waits for duplicates in
 * other processes, replaces outdated records, and reports refusals.
 */
async function replayOrClaim(
  services: Needs<"db" | "signing">,
  request: Keyed,
  waitMs: number,
  effect: (tx: Database) => Promise<Answer>,
  together: EffectTogether,
): Promise<Outcome> {
  const { accountId, keyHash, fingerprint, bytesFingerprint } = request;
  const stored = request.stored
    ? request.stored.answer
    : await lookUpAnswer(services.db, { accountId, keyHash });
  if (stored) return { answer: replay(services, stored, fingerprint), replayed: true };
  await failpoint("idempotency.before_claim");
  const claim: Claim = { keyHash, fingerprint, bytesFingerprint, windowMs: limits.idempotencyWindowMs };
  const answer = await together(claim).catch(nullIfProblem);
  if (!answer) return await claimAndRun(services, request, waitMs, effect);
  await failpoint("idempotency.after_commit");
  return { answer, replayed: false };
}

/** A duplicate that is in progress elsewhere takes precedence over the refusal (docs/decisions/0010, case 4); only a claim detects it. */
function nullIfProblem(error: unknown): null {
  if (error instanceof Problem) return null;
  throw error;
}

async function claimAndRun(
  services: Needs<"db" | "signing">,
  request: Keyed,
  waitMs: number,
  effect: (tx: Database) => Promise<Answer>,
): Promise<Outcome> {
  const outcome = await services.db.transaction(
    async (tx) => {
      const won = await claim(tx, request, waitMs);
      await failpoint("idempotency.after_claim");
      if (!won) {
        const stored = await findAnswer(tx, request.accountId, request.keyHash);
        // The first one's row went between the claim and here (the sweeper at the 24th hour): the caller tries again.
        if (!stored) throw inUse();
        return { answer: replay(services, stored, request.fingerprint), replayed: true };
      }
      const answer = await effect(tx);
      await storeAnswer(tx, request.accountId, request.keyHash, storedForm(services, answer));
      await failpoint("idempotency.before_commit");
      return { answer, replayed: false };
    },
    { settle: true },
  );
  await failpoint("idempotency.after_commit");
  return outcome;
}

async function claim(tx: Database, request: Keyed, waitMs: number): Promise<boolean> {
  try {
    return await claimKey(tx, { ...request, windowMs: limits.idempotencyWindowMs, waitMs });
  } catch (error) {
    // Only here: if an effect waits too long for another lock, there is no duplicate in progress.
    if ((error as { code?: unknown }).code === LOCK_NOT_AVAILABLE) throw inUse();
    throw error;
  }
}

function replay(services: Needs<"signing">, stored: StoredAnswer, fingerprint: Buffer): Answer {
  if (!stored.fingerprint.equals(fingerprint)) throw reused();
  if (stored.tokenSessionId === null) return { status: stored.status, body: stored.body.toString("utf8") };
  const at = must(stored.tokenAt, "the token's place");
  const token = tokenOf(services, stored.tokenSessionId);
  const body = Buffer.concat([stored.body.subarray(0, at), Buffer.from(token), stored.body.subarray(at)]);
  return { status: stored.status, body: body.toString("utf8"), tokenOfSession: stored.tokenSessionId };
}

/** The secret in a session's first answer: the token of its link or of the embedding page. */
function tokenOf({ signing }: Needs<"signing">, sessionId: string): string {
  return isId("embeddedCredentialSession", sessionId)
    ? signing.clientToken(sessionId)
    : signing.hostedToken(sessionId);
}

/** An answer as it is stored: without its token. */
function storedForm(
  services: Needs<"signing">,
  answer: Answer,
): Omit<StoredAnswer, "fingerprint" | "bytesFingerprint"> {
  const { status, tokenOfSession } = answer;
  const body = Buffer.from(answer.body, "utf8");
  if (tokenOfSession === undefined) return { status, body, tokenSessionId: null, tokenAt: null };
  const token = Buffer.from(tokenOf(services, tokenOfSession));
  const tokenAt = body.indexOf(token);
  const rest = Buffer.concat([body.subarray(0, tokenAt), body.subarray(tokenAt + token.length)]);
  return { status, body: rest, tokenSessionId: tokenOfSession, tokenAt };
}

/** The record of a key and its answer, for an `EffectTogether`. */
export const recordOf = (services: Needs<"signing">, claim: Claim, answer: Answer): KeyRecord => ({
  ...claim,
  ...storedForm(services, answer),
});

/** Spec, Idempotency 4: same key, different body → 409. */
function reused(): Problem {
  const message = "The Idempotency-Key was used earlier with a different request.";
  return new Problem("conflict", message, {
    details: [{ message, code: "idempotency_key_reuse", field: "Idempotency-Key" }],
  });
}

function inUse(): Problem {
  const message = "A request with this Idempotency-Key is still being processed. Try again in a second.";
  return new Problem("conflict", message, {
    details: [{ message, code: "idempotency_key_in_use", field: "Idempotency-Key" }],
    headers: { "Retry-After": "1" },
  });
}

import { StoreFailed } from "#blobs/store.ts";
import { isConnectionLost, isLockedOut } from "#db/connection/database-errors.ts";
import type { Lease } from "#db/runs/lease.ts";
import { failRun, findRun, parkRun, releaseRun, type ClaimedRun } from "#db/runs/runs.ts";
import { RowRefused } from "#domain/refused-row.ts";
import { failpoint } from "#lib/failpoint.ts";
import { describeError } from "#lib/log.ts";
import { metrics } from "#lib/metrics.ts";
import { RunPollsLater, RunFailure, RunQueued, RunParked, RunStopped } from "./run-ended.ts";
import type { EngineServices } from "./services.ts";
import type { Tallies } from "./tallies.ts";
import { waitOutside } from "./waiting/ask-again.ts";
import { retryWhileLocked } from "./waiting/retry-while-locked.ts";
import { queueRun } from "./waiting/join-queue.ts";

/** How the execution of a run ended, for the worker. */
export type RunOutcome =
  /** Terminal: the account may admit its next run. */
  | { readonly kind: "ended"; readonly accountId: string }
  /** The run waits for a person, for its turn or for its next poll, and holds nothing: the account may admit its next run. */
  | { readonly kind: "parked"; readonly accountId: string }
  /** Handed back at a drain: another worker may take it. */
  | { readonly kind: "released"; readonly accountId: string }
  /** Handed back because it can't continue now: any worker may take it after this time. */
  | { readonly kind: "delayed"; readonly accountId: string; readonly delayMs: number }
  /** Not ours: it is already terminal, or another worker has it. */
  | { readonly kind: "skipped" }
  /** The database was unreachable or stayed locked: the worker's reconciler frees the run when it is back. */
  | { readonly kind: "connection_lost" };

/** A run that a worker executes. */
interface ExecutedRun {
  readonly run: ClaimedRun;
  readonly lease: Lease;
  readonly tallies: Tallies;
  /** Stops the run. */
  readonly signal: AbortSignal;
}

/** Ends the execution of a run that did not complete, according to what was thrown. */
export async function endRun(
  services: EngineServices,
  executed: ExecutedRun,
  thrown: unknown,
): Promise<RunOutcome> {
  const { run, lease, signal } = executed;
  if (isConnectionLost(thrown) || isLockedOut(thrown)) return { kind: "connection_lost" };
  const isOfStore = thrown instanceof StoreFailed;
  // The reason why the run stopped takes precedence over the store's error.
  if (isOfStore && !signal.aborted) {
    metrics.storeFailures.add({});
    services.log.error(
      { runId: run.id, reason: thrown.message },
      "the object store failed; the run waits and will continue from its journal",
    );
    return await delayRun(services, run, lease);
  }
  const error: unknown = isOfStore || (signal.aborted && isAbort(thrown)) ? signal.reason : thrown;
  if (error instanceof RunParked) return outcomeOf(run, "parked", await park(services, run, lease, error));
  const reason = error instanceof RunStopped ? error.reason : null;
  if (reason === "lease_lost" || reason === "cancelled") {
    await removeResultsOfCancelled(services, run);
    return { kind: "skipped" };
  }
  if (reason === "drain") {
    await failpoint("run.before_release");
    const released = await retryWhileLocked(async () => await releaseRun(services.db, lease));
    await failpoint("run.after_release");
    return outcomeOf(run, "released", released);
  }
  return outcomeOf(run, "ended", await fail(services, executed, failureOf(services, run, error, reason)));
}

/** The error of a wait that the signal aborted; the reason is only in the signal. */
const isAbort = (error: unknown): boolean => error instanceof Error && error.name === "AbortError";

const outcomeOf = (
  { accountId }: ClaimedRun,
  kind: "ended" | "parked" | "released",
  isOurs: boolean,
): RunOutcome => (isOurs ? { kind, accountId } : { kind: "skipped" });

/** Retries become rarer, because each one repeats the reads that the journal does not have. */
const DELAY_MS = { first: 2_000, most: 60_000 } as const;
const DOUBLINGS_MAX = 10;

/**
 * Hands back a run that can't continue now, with a delay that grows with each claim. It continues from its journal, until its timeout, which
 * goes on meanwhile: what it waits for may never come back.
 */
export async function delayRun(
  services: Pick<EngineServices, "db">,
  run: ClaimedRun,
  lease: Lease,
): Promise<RunOutcome> {
  const delayMs = Math.min(DELAY_MS.first * 2 ** Math.min(run.epoch - 1, DOUBLINGS_MAX), DELAY_MS.most);
  const released = await retryWhileLocked(async () => await releaseRun(services.db, lease, delayMs));
  return released ? { kind: "delayed", accountId: run.accountId, delayMs } : { kind: "skipped" };
}

/** False: the lease is lost. */
async function park(
  services: EngineServices,
  run: ClaimedRun,
  lease: Lease,
  parked: RunParked,
): Promise<boolean> {
  if (parked instanceof RunQueued) return await queueRun(services, run, lease, parked);
  await failpoint("run.before_park");
  const isParked =
    parked instanceof RunPollsLater
      ? await waitOutside(services, lease, parked)
      : await parkForReview(services, lease, parked);
  await failpoint("run.after_park");
  return isParked;
}

async function parkForReview(
  { db, news }: EngineServices,
  lease: Lease,
  { ask }: RunParked,
): Promise<boolean> {
  const isParked = await retryWhileLocked(
    async () =>
      await db.transaction(async (tx) => {
        if (!(await parkRun(tx, lease))) return false;
        await ask(tx);
        return true;
      }),
  );
  news.announce([lease.runId]);
  return isParked;
}

/** Removes objects that were still being written when the run was cancelled and have reached the store by now. */
async function removeResultsOfCancelled(services: EngineServices, run: ClaimedRun): Promise<void> {
  const now = await findRun(services.db, run.accountId, { id: run.id });
  if (now?.status !== "cancelled") return;
  await services.blobs.removeAll(`results/${run.accountId}/${run.id}/`);
  services.log.info({ runId: run.id }, "stopped a cancelled run");
}

/** False: the lease is lost. */
async function fail(
  services: EngineServices,
  { run, lease, tallies }: ExecutedRun,
  { kind, message: detail }: RunFailure,
): Promise<boolean> {
  await failpoint("run.before_fail");
  const failure = { lease, kind, detail, tally: tallies.take() };
  const failed = await retryWhileLocked(async () => await failRun(services.db, failure));
  if (failed) metrics.runsFailed.add({ kind });
  await failpoint("run.after_fail");
  services.news.announce([run.id]);
  services.log.info({ runId: run.id, kind, detail }, "run failed");
  return failed;
}

function failureOf(
  services: EngineServices,
  run: ClaimedRun,
  error: unknown,
  reason: string | null,
): RunFailure {
  if (error instanceof RunFailure) return error;
  if (error instanceof RowRefused) return new RunFailure("internal", error.message);
  if (reason === "timeout")
    return new RunFailure("timeout", "The run took longer than its Blueprint's timeout.");
  if (reason === "credential_deleted") {
    return new RunFailure("credential_deleted", "A credential of the run was deleted while it ran.");
  }
  services.log.error({ runId: run.id, ...describeError(error) }, "a run failed unexpectedly");
  return new RunFailure("internal", `An unexpected error (${describeError(error).error}).`);
}

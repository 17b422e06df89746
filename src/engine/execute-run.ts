import { StoreFailed } from "#blobs/store.ts";
import { findCachedBlueprintVersion } from "#db/config-documents.ts";
import { isConnectionLost, isLockedOut } from "#db/connection/database-errors.ts";
import type { Lease } from "#db/runs/lease.ts";
import { completeRun, type NewResult } from "#db/runs/run-results.ts";
import {
  failRun,
  findRun,
  listRunInputs,
  parkRun,
  releaseRun,
  startRun,
  type ClaimedRun,
} from "#db/runs/runs.ts";
import type { Blueprint } from "#domain/blueprint.ts";
import { limits } from "#domain/limits.ts";
import { estimateResponseBytes } from "#domain/run-results.ts";
import { RowRefused } from "#domain/refused-row.ts";
import { TEST_LOGIN } from "#domain/test-login.ts";
import { must } from "#lib/assert.ts";
import { failpoint } from "#lib/failpoint.ts";
import { describeError } from "#lib/log.ts";
import { resultKeysOf } from "#nodes/types/output.ts";
import { waitOutside } from "./waiting/ask-again.ts";
import { executeNodes, type UnboundRun } from "./execute-nodes.ts";
import { databaseJournal } from "./database-journal.ts";
import { openDoor, type Door } from "./redaction/door.ts";
import { readJournal } from "./journal.ts";
import { logInNoted, logInTraced } from "./login/log-in-run.ts";
import { retryWhileLocked } from "./waiting/retry-while-locked.ts";
import { planOnce, type RunPlan } from "./plan-run.ts";
import { inputValues } from "./read-inputs.ts";
import { redactorOf } from "./redaction/redact.ts";
import { RunClock } from "./waiting/run-clock.ts";
import { RunAsksLater, RunFailure, RunInLine, RunParked, RunStopped } from "./run-ended.ts";
import type { EngineServices } from "./services.ts";
import { Scratch } from "./outputs/spool.ts";
import { stand } from "./waiting/stand-in-line.ts";
import { openTarget, type TargetSession } from "./login/target-session.ts";

/** How the carrying of a run ended, for the worker. */
export type RunOutcome =
  /** Terminal: its account may admit the next. */
  | { readonly kind: "ended"; readonly accountId: string }
  /** It waits for a person, for its turn or for the time to ask again, and holds nothing: its account may admit the next. */
  | { readonly kind: "parked"; readonly accountId: string }
  /** Handed back at a drain: another worker may take it. */
  | { readonly kind: "released"; readonly accountId: string }
  /** Handed back because it can't go on just now: any worker may take it after this time. */
  | { readonly kind: "delayed"; readonly accountId: string; readonly delayMs: number }
  /** Not ours: terminal already, or with another worker. */
  | { readonly kind: "skipped" }
  /** The database went away, or stayed locked: the worker's reconciler frees the run when it is back. */
  | { readonly kind: "connection_lost" };

/** Executes one run, from claimed to terminal. */
export async function executeRun(
  services: EngineServices,
  claimed: ClaimedRun,
  workerId: string,
  stop: AbortController,
): Promise<RunOutcome> {
  const lease = { runId: claimed.id, owner: workerId, epoch: claimed.epoch };
  const clock = new RunClock(claimed.remainingMs, () => stop.abort(new RunStopped("timeout")));
  try {
    await failpoint("run.after_claim");
    if (claimed.lostLeases >= limits.lostLeasesMax) {
      throw new RunFailure(
        "interrupted",
        `The run lost its worker ${claimed.lostLeases} times without getting further.`,
      );
    }
    // Of a suspect nothing is begun.
    if (claimed.remainingMs <= 0) stop.abort(new RunStopped("timeout"));
    await carry(services, claimed, lease, clock, stop.signal);
    return { kind: "ended", accountId: claimed.accountId };
  } catch (error) {
    if (isConnectionLost(error) || isLockedOut(error)) return { kind: "connection_lost" };
    // Whatever stopped the run comes before what the store said to that.
    if (error instanceof StoreFailed && !stop.signal.aborted)
      return await handBack(services, claimed, lease, error);
    const isStopped = error instanceof StoreFailed || (stop.signal.aborted && isAbort(error));
    return await end(services, claimed, lease, isStopped ? stop.signal.reason : error);
  } finally {
    clock.end();
  }
}

/** What a wait that hears a signal throws: why it was given is only in the signal. */
const isAbort = (error: unknown): boolean => error instanceof Error && error.name === "AbortError";

/** The longer it lasts, the more seldom: what the journal has not is read from the target again each time. */
const DELAY_MS = { first: 2_000, most: 60_000 } as const;
const DOUBLINGS_MAX = 10;

/** The object store is down, or set up wrong: the run goes on from its journal when it works again, until its own time is over. */
async function handBack(
  services: EngineServices,
  run: ClaimedRun,
  lease: Lease,
  failure: StoreFailed,
): Promise<RunOutcome> {
  services.log.error(
    { runId: run.id, reason: failure.message },
    "the object store failed; the run waits and goes on from its journal",
  );
  return await delayRun(services, run, lease);
}

/** Hands a run back that can't go on just now, for a while that grows with each claim. */
export async function delayRun(
  services: Pick<EngineServices, "db">,
  run: ClaimedRun,
  lease: Lease,
): Promise<RunOutcome> {
  const delayMs = Math.min(DELAY_MS.first * 2 ** Math.min(run.epoch - 1, DOUBLINGS_MAX), DELAY_MS.most);
  const released = await retryWhileLocked(async () => await releaseRun(services.db, lease, delayMs));
  return released ? { kind: "delayed", accountId: run.accountId, delayMs } : { kind: "skipped" };
}

async function end(
  services: EngineServices,
  run: ClaimedRun,
  lease: Lease,
  error: unknown,
): Promise<RunOutcome> {
  if (error instanceof RunInLine) {
    const stands = await stand(services, run, lease, error);
    return stands ? { kind: "parked", accountId: run.accountId } : { kind: "skipped" };
  }
  if (error instanceof RunAsksLater) {
    await failpoint("run.before_park");
    const waits = await waitOutside(services, lease, error);
    await failpoint("run.after_park");
    return waits ? { kind: "parked", accountId: run.accountId } : { kind: "skipped" };
  }
  if (error instanceof RunParked) {
    await failpoint("run.before_park");
    const parked = await retryWhileLocked(
      async () =>
        await services.db.transaction(async (tx) => {
          if (!(await parkRun(tx, lease))) return false;
          await error.ask(tx);
          return true;
        }),
    );
    services.news.announce([run.id]);
    await failpoint("run.after_park");
    return parked ? { kind: "parked", accountId: run.accountId } : { kind: "skipped" };
  }
  const reason = error instanceof RunStopped ? error.reason : null;
  if (reason === "lease_lost" || reason === "cancelled") {
    await removeResultsOfCancelled(services, run);
    return { kind: "skipped" };
  }
  if (reason === "drain") {
    await failpoint("run.before_release");
    const released = await retryWhileLocked(async () => await releaseRun(services.db, lease));
    await failpoint("run.after_release");
    return released ? { kind: "released", accountId: run.accountId } : { kind: "skipped" };
  }
  const failure = failureOf(services, run, error, reason);
  await failpoint("run.before_fail");
  const { kind, message: detail } = failure;
  const failed = await retryWhileLocked(async () => await failRun(services.db, { lease, kind, detail }));
  await failpoint("run.after_fail");
  services.news.announce([run.id]);
  services.log.info({ runId: run.id, kind, detail }, "run failed");
  return failed ? { kind: "ended", accountId: run.accountId } : { kind: "skipped" };
}

/** What was still being written when the run was cancelled is in the store by now. */
async function removeResultsOfCancelled(services: EngineServices, run: ClaimedRun): Promise<void> {
  const now = await findRun(services.db, run.accountId, { id: run.id });
  if (now?.status !== "cancelled") return;
  await services.blobs.removeAll(`results/${run.accountId}/${run.id}/`);
  services.log.info({ runId: run.id }, "stopped a cancelled run");
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

async function carry(
  services: EngineServices,
  run: ClaimedRun,
  lease: Lease,
  clock: RunClock,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  services.news.announce([run.id]);
  const plan = planOnce(await blueprintOf(services, run));
  await using opened = new AsyncDisposableStack();
  await failpoint("run.before_login");
  const { targets, secrets } = await (run.blueprintId === null
    ? logInTraced(services, run, lease, plan, opened, clock, signal)
    : logInNoted(services, run, lease, plan, opened, clock, signal));
  await failpoint("run.after_login");
  // What had nobody to log in was `running` from its claim on.
  if (run.status === "queued") {
    if (!(await retryWhileLocked(async () => await startRun(services.db, { lease }))))
      throw new RunStopped("lease_lost");
    services.news.announce([run.id]);
  }
  await failpoint("run.after_start");
  const isFirst = run.epoch === 1;
  if (!isFirst) await Scratch.sweep(services.scratchFolder, run.id);
  await using scratch = new Scratch(services.scratchFolder, run.id, run.epoch);
  const redact = redactorOf(secrets);
  const door = openDoor(secrets, null);
  const inputs = inputValues(services.blobs, run.hasInputs ? await listRunInputs(services.db, run.id) : []);
  const context: UnboundRun = {
    services,
    journal: databaseJournal(services, run, lease, clock),
    run,
    lease,
    plan,
    signal,
    scratch,
    redact,
    door,
    inputs,
    targets,
    openTarget: openPublicTarget(services, plan, door),
    bindings: [],
    outputs: new Map(isFirst ? [] : await readJournal(services, run)),
    results: new Map(),
    shown: { step: run.status === "queued" ? "running" : run.progressStep },
  };
  let mayBeComplete = false;
  try {
    await executeNodes(context);
    mayBeComplete = true;
    await complete(services, run, lease, plan, context.results);
  } catch (error) {
    // Result objects of a run that did not complete belong to nobody. When the transaction broke off, nobody knows whether it did:
    // then they are left to the sweep of objects that no row names.
    if (!mayBeComplete || error instanceof RunStopped)
      await services.blobs.remove([...context.results.values()].flatMap(({ blob }) => blob?.key ?? []));
    throw error;
  } finally {
    for (const binding of context.bindings) binding.release();
    if (redact.changes > 0) {
      services.log.warn(
        { runId: run.id, texts: redact.changes },
        "a target gave a secret of the run back; it was replaced before any node saw it or anything was stored",
      );
    }
  }
}

/** For nodes without a credential. */
function openPublicTarget({ gate }: EngineServices, { blueprint }: RunPlan, door: Door): TargetSession {
  const origins = blueprint.hosts.map((host) => new URL(host).origin);
  return openTarget(gate, origins, null, undefined, null, door);
}

async function blueprintOf(services: EngineServices, run: ClaimedRun): Promise<Blueprint> {
  const { blueprintId, blueprintVersion } = run;
  if (blueprintId === null || blueprintVersion === null) return TEST_LOGIN;
  return must(
    await findCachedBlueprintVersion(services.db, blueprintId, blueprintVersion),
    "the run's Blueprint",
  );
}

/** The results and the terminal state are one transaction: `completed` means that every result is there. */
async function complete(
  services: EngineServices,
  run: ClaimedRun,
  lease: Lease,
  plan: RunPlan,
  written: ReadonlyMap<string, NewResult>,
): Promise<void> {
  const keys = plan.blueprint.nodes
    .filter((node) => node.type === "output")
    .flatMap((node) => resultKeysOf(node));
  // An output that was skipped has no result key of its own records: it shows an empty set nowhere.
  const results = keys.flatMap(({ key }) => written.get(key) ?? []);
  const responseBytes = estimateResponseBytes(results, run.metadata.length);
  await failpoint("run.before_complete");
  const { accountId } = run;
  const completion = { lease, accountId, responseBytes, results };
  if (!(await retryWhileLocked(async () => await completeRun(services.db, completion))))
    throw new RunStopped("lease_lost");
  await failpoint("run.after_complete");
  services.news.announce([run.id]);
}

import { StoreFailed } from "#blobs/store.ts";
import { keepBlueprintVersion, keepStrategyVersion, lookUpStrategy } from "#db/config-documents.ts";
import { isConnectionLost, isLockedOut } from "#db/database-errors.ts";
import type { Lease } from "#db/lease.ts";
import { completeRun, type NewResult } from "#db/run-results.ts";
import {
  claimRun,
  failRun,
  findRun,
  isSuspect,
  listRunInputs,
  parkRun,
  releaseRun,
  startRun,
  type ClaimedRun,
} from "#db/runs.ts";
import type { Blueprint } from "#domain/blueprint.ts";
import { limits } from "#domain/limits.ts";
import { estimateResponseBytes } from "#domain/run-results.ts";
import { RowRefused } from "#domain/refused-row.ts";
import type { Strategy } from "#domain/strategy.ts";
import { TEST_LOGIN } from "#domain/test-login.ts";
import type { Secret } from "#lib/secret.ts";
import { must } from "#lib/assert.ts";
import { failpoint } from "#lib/failpoint.ts";
import { describeError } from "#lib/log.ts";
import { resultKeysOf } from "#nodes/output.ts";
import type { LoginSession } from "#strategies/define-login.ts";
import { credentialOrigins, loginTypes } from "#strategies/registry.ts";
import type { SessionJar } from "#strategies/session-jar.ts";
import { carryNodes, type UnboundRun } from "./carry-nodes.ts";
import { databaseJournal } from "./database-journal.ts";
import { openDestination } from "./destination.ts";
import { namesOf } from "./document-names.ts";
import { openDoor, type Door } from "./door.ts";
import { openHandles } from "./handles.ts";
import { readJournal } from "./journal.ts";
import { login } from "./login.ts";
import { LoginTrace } from "./login-trace.ts";
import { outlastLocks } from "./outlast-locks.ts";
import { planOnce, type RunPlan } from "./plan-run.ts";
import { inputValues } from "./read-inputs.ts";
import { guardReceivers, type BeforeHop } from "./record-use.ts";
import { redactorOf } from "./redact.ts";
import { openRenewingTarget } from "./renewing-target.ts";
import { RunFailure, RunParked, RunStopped } from "./run-ended.ts";
import { openRunSecrets, type RunSecrets } from "./run-secrets.ts";
import type { EngineServices } from "./services.ts";
import { Scratch } from "./spool.ts";
import { openTarget, type TargetSession } from "./target-session.ts";

/** How the carrying of a run ended, for the worker. */
export type RunOutcome =
  /** Terminal: its account may admit the next. */
  | { readonly kind: "ended"; readonly accountId: string }
  /** It waits for a person: its account may admit the next. */
  | { readonly kind: "parked"; readonly accountId: string }
  /** Handed back at a drain: it needs a new job. */
  | { readonly kind: "released"; readonly runId: string }
  /** Handed back because the object store failed: it goes on after this time. */
  | { readonly kind: "delayed"; readonly runId: string; readonly delayMs: number }
  /** It was not claimed: it must be alone in its worker. */
  | { readonly kind: "suspect" }
  /** Not ours: terminal already, or with another worker. */
  | { readonly kind: "skipped" }
  /** The database went away, or stayed locked: the worker's reconciler frees the run when it is back. */
  | { readonly kind: "adrift" };

/** Claims a run that is admitted already and carries it. `stop` is the worker's means to stop it; `isAlone`: it carries no other. */
export async function executeRun(
  services: EngineServices,
  runId: string,
  workerId: string,
  stop: AbortController,
  isAlone: boolean,
): Promise<RunOutcome> {
  await failpoint("run.before_claim");
  const claimed = await claimRun(services.db, runId, workerId, isAlone);
  if (claimed) return await carryRun(services, claimed, workerId, stop);
  const mustBeAlone = !isAlone && (await isSuspect(services.db, runId, workerId));
  return { kind: mustBeAlone ? "suspect" : "skipped" };
}

/** Carries one run from claimed to terminal. */
export async function carryRun(
  services: EngineServices,
  claimed: ClaimedRun,
  workerId: string,
  stop: AbortController,
): Promise<RunOutcome> {
  const lease = { runId: claimed.id, owner: workerId, epoch: claimed.epoch };
  const timer = setTimeout(() => stop.abort(new RunStopped("timeout")), Math.max(claimed.remainingMs, 0));
  try {
    await failpoint("run.after_claim");
    if (claimed.lostLeases >= limits.lostLeasesMax) {
      throw new RunFailure(
        "interrupted",
        `The run lost its worker ${claimed.lostLeases} times without getting further.`,
      );
    }
    await carry(services, claimed, lease, stop.signal);
    return { kind: "ended", accountId: claimed.accountId };
  } catch (error) {
    if (isConnectionLost(error) || isLockedOut(error)) return { kind: "adrift" };
    // Whatever stopped the run comes before what the store said to that.
    if (error instanceof StoreFailed && !stop.signal.aborted)
      return await handBack(services, claimed, lease, error);
    const isStopped = error instanceof StoreFailed || (stop.signal.aborted && isAbort(error));
    return await end(services, claimed, lease, isStopped ? stop.signal.reason : error);
  } finally {
    clearTimeout(timer);
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
  const delayMs = Math.min(DELAY_MS.first * 2 ** Math.min(run.epoch - 1, DOUBLINGS_MAX), DELAY_MS.most);
  services.log.error(
    { runId: run.id, delayMs, reason: failure.message },
    "the object store failed; the run waits and goes on from its journal",
  );
  const released = await outlastLocks(async () => await releaseRun(services.db, lease));
  return released ? { kind: "delayed", runId: run.id, delayMs } : { kind: "skipped" };
}

async function end(
  services: EngineServices,
  run: ClaimedRun,
  lease: Lease,
  error: unknown,
): Promise<RunOutcome> {
  if (error instanceof RunParked) {
    await failpoint("run.before_park");
    const parked = await outlastLocks(
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
    const released = await outlastLocks(async () => await releaseRun(services.db, lease));
    await failpoint("run.after_release");
    return released ? { kind: "released", runId: run.id } : { kind: "skipped" };
  }
  const failure = failureOf(services, run, error, reason);
  await failpoint("run.before_fail");
  const { kind, message: detail } = failure;
  const failed = await outlastLocks(async () => await failRun(services.db, { lease, kind, detail }));
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
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  services.news.announce([run.id]);
  const plan = planOnce(await blueprintOf(services, run));
  await using opened = new AsyncDisposableStack();
  await failpoint("run.before_login");
  const { targets, secrets } = await (run.blueprintId === null
    ? logInTraced(services, run, lease, plan, opened, signal)
    : logIn(services, run, lease, plan, opened, signal));
  await failpoint("run.after_login");
  // What had nobody to log in was `running` from its claim on.
  if (run.status === "queued") {
    if (!(await outlastLocks(async () => await startRun(services.db, { lease }))))
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
    journal: databaseJournal(services, run, lease),
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
    await carryNodes(context);
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
  return must(await keepBlueprintVersion(services.db, blueprintId, blueprintVersion), "the run's Blueprint");
}

/** A test login: the same, and its steps are written down however it ends. */
async function logInTraced(
  services: EngineServices,
  run: ClaimedRun,
  lease: Lease,
  plan: RunPlan,
  opened: AsyncDisposableStack,
  signal: AbortSignal,
): ReturnType<typeof logIn> {
  const trace = new LoginTrace(services.db, lease, run.accountId);
  try {
    const loggedIn = await logIn(services, run, lease, plan, opened, signal, trace);
    await trace.end(null);
    return loggedIn;
  } catch (error) {
    if (error instanceof RunFailure) await trace.end(error);
    throw error;
  }
}

/** All logins come before `running`; after a crash the run shows the step that it had (design, page 1, Milestones). */
async function logIn(
  services: EngineServices,
  run: ClaimedRun,
  lease: Lease,
  plan: RunPlan,
  opened: AsyncDisposableStack,
  signal: AbortSignal,
  trace?: LoginTrace,
): Promise<{ targets: ReadonlyMap<string, TargetSession>; secrets: RunSecrets }> {
  const targets = new Map<string, TargetSession>();
  const secrets = openRunSecrets([], namesOf(plan.blueprint));
  for (const credential of run.credentials) {
    const { strategyId, strategyVersion } = credential;
    const strategy = must(
      await keepStrategyVersion(services.db, run.accountId, strategyId, strategyVersion),
      "the credential's strategy",
    );
    const used = { accountId: run.accountId, credentialId: credential.credentialId, runId: run.id };
    const { origins, inForce } = await originsOf(services, run, strategy);
    const destination = openDestination(credential.credentialId, inForce);
    const guard = guardReceivers(services, used, destination);
    const beforeHop: BeforeHop = async (hop, isFirst) => {
      await guard(hop, isFirst);
      trace?.asks(hop);
    };
    const asked = { version: strategyVersion, strategy };
    const mayLeave = (): void => services.fence.check(lease);
    const request = {
      ...used,
      epoch: run.epoch,
      mayLeave,
      strategyId,
      strategy: asked,
      origins,
      destination,
      beforeHop,
      trace,
    };
    const handles = openHandles(services.handleMac, used);
    const door = openDoor(secrets, handles);
    const logInKnown = async (at: AbortSignal, refused?: Secret<LoginSession>) => {
      const {
        session,
        secrets: known,
        fromTarget,
        fromEndUser,
      } = await login(services, { ...request, refused }, at);
      secrets.add(known);
      handles.add(fromTarget, fromEndUser);
      return session;
    };
    const first = await logInKnown(signal);
    const open = (session: Secret<LoginSession>, jar?: SessionJar): TargetSession =>
      openTarget(services.gate, origins, session, jar, beforeHop, door);
    // A login that sends a password again whenever a target says 401 would lock people out: only what renews by itself does.
    const target = loginTypes.get(strategy.login.type)?.keepsItsOwnSession
      ? openRenewingTarget(first, open, async (refused, at) => await logInKnown(at, refused))
      : open(first);
    opened.defer(async () => await target.close());
    targets.set(credential.slot, target);
  }
  const missing = plan.blueprint.credentials.find(({ slot }) => !targets.has(slot));
  if (missing) throw new RunFailure("credential_deleted", `The slot "${missing.slot}" has no credential.`);
  return { targets, secrets };
}

/**
 * The hosts of the version that the run was triggered with (`origins`), and whatever else its login may send to (`inForce`, hosts
 * included); a list that was tightened since counts at once. What the credential says of itself is known when it is opened.
 */
async function originsOf(
  services: EngineServices,
  run: ClaimedRun,
  strategy: Strategy,
): Promise<{ readonly origins: readonly string[]; readonly inForce: readonly string[] }> {
  const now = must(await lookUpStrategy(services.db, run.accountId, strategy.id), "the strategy");
  const named = credentialOrigins(now.strategy);
  return {
    origins: strategy.hosts.filter((host) => now.strategy.hosts.includes(host)),
    inForce: credentialOrigins(strategy).filter((origin) => named.includes(origin)),
  };
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
  if (!(await outlastLocks(async () => await completeRun(services.db, completion))))
    throw new RunStopped("lease_lost");
  await failpoint("run.after_complete");
  services.news.announce([run.id]);
}

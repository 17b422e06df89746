import { findCachedVersion } from "#db/config-documents.ts";
import { findTraceparent } from "#db/runs/run-trace.ts";
import { listRunInputs, startRun, type ClaimedRun } from "#db/runs/runs.ts";
import type { Blueprint } from "#domain/blueprint.ts";
import { limits } from "#domain/limits.ts";
import { TEST_LOGIN } from "#domain/test-login.ts";
import { must } from "#lib/assert.ts";
import { failpoint } from "#lib/failpoint.ts";
import { inSpan, isTracing } from "#lib/tracing.ts";
import { databaseJournal } from "./database-journal.ts";
import { endRun, type RunOutcome } from "./end-run.ts";
import { executeNode } from "./execute-node.ts";
import { executeNodes, type UnboundRun } from "./execute-nodes.ts";
import { finishRun } from "./finish-run.ts";
import { readJournal } from "./journal.ts";
import { logIn, type RunLogin } from "./login/log-in-run.ts";
import { openTarget } from "./login/target-session.ts";
import { Scratch } from "./outputs/spool.ts";
import { planOnce } from "./plan-run.ts";
import { inputValues } from "./read-inputs.ts";
import { openDoor } from "./redaction/door.ts";
import { redactorOf } from "./redaction/redact.ts";
import type { PlannedNode, RunContext } from "./run-context.ts";
import { RunFailure, RunStopped } from "./run-ended.ts";
import type { EngineServices } from "./services.ts";
import { Tallies } from "./tallies.ts";
import { retryWhileLocked } from "./waiting/retry-while-locked.ts";
import { RunClock } from "./waiting/run-clock.ts";
import { browsersOf, queueWithoutBrowser } from "./waiting/take-browser.ts";

/** Executes one run, from claimed to terminal, parked or handed back, in a span that continues the trace of its trigger. */
export async function executeRun(
  services: EngineServices,
  run: ClaimedRun,
  workerId: string,
  stop: AbortController,
): Promise<RunOutcome> {
  if (!isTracing()) return await executeClaimed(services, run, workerId, stop);
  const parent = await findTraceparent(services.db, run.id).catch(() => null);
  const attributes = { "latchkey.run.id": run.id, "latchkey.run.epoch": run.epoch };
  return await inSpan("run", { parent, kind: "consumer", attributes }, async (span) => {
    const outcome = await executeClaimed(services, run, workerId, stop);
    span.set("latchkey.run.outcome", outcome.kind);
    return outcome;
  });
}

async function executeClaimed(
  services: EngineServices,
  run: ClaimedRun,
  workerId: string,
  stop: AbortController,
): Promise<RunOutcome> {
  const lease = { runId: run.id, owner: workerId, epoch: run.epoch };
  const clock = new RunClock(services.clock, run.remainingMs, () => stop.abort(new RunStopped("timeout")));
  const tallies = new Tallies(services.clock, run.claimedAtMs);
  const { signal } = stop;
  const own = { ...services, browsers: browsersOf(services, run, lease) };
  try {
    await failpoint("run.after_claim");
    if (run.lostLeases >= limits.lostLeasesMax) {
      throw new RunFailure(
        "interrupted",
        `The run lost its worker ${run.lostLeases} times without getting further. A process that takes more memory than its machine or container has is killed like that.`,
      );
    }
    // A run that has timed out ends before any part of it is started.
    if (run.remainingMs <= 0) stop.abort(new RunStopped("timeout"));
    signal.throwIfAborted();
    services.news.announce([run.id]);
    const plan = planOnce(await blueprintOf(services, run));
    await using opened = new AsyncDisposableStack();
    await execute({ services: own, run, lease, plan, clock, signal, opened }, tallies);
    return { kind: "ended", accountId: run.accountId };
  } catch (error) {
    return await endRun(services, { run, lease, tallies, signal }, error);
  } finally {
    clock.end();
  }
}

async function blueprintOf(services: EngineServices, run: ClaimedRun): Promise<Blueprint> {
  const { accountId, blueprintId: id, blueprintVersion: version } = run;
  if (id === null || version === null) return TEST_LOGIN;
  return must(
    await findCachedVersion(services.db, "blueprint", { accountId, id, version }),
    "the run's Blueprint",
  );
}

/** The logins, then the nodes that the journal does not have, then the results. */
async function execute(begun: RunLogin, tallies: Tallies): Promise<void> {
  const { services, run, lease } = begun;
  await queueWithoutBrowser(services.browsers, run, begun.plan.blueprint);
  await failpoint("run.before_login");
  const loggedIn =
    run.credentials.length === 0
      ? await logIn(begun)
      : await inSpan("login", {}, async () => await logIn(begun));
  if (loggedIn.targets.size > 0)
    services.log.info({ runId: run.id, logins: loggedIn.targets.size }, "run logged in");
  await failpoint("run.after_login");
  // A run without logins has been `running` since it was claimed.
  if (run.status === "queued") {
    if (!(await retryWhileLocked(async () => await startRun(services.db, { lease }))))
      throw new RunStopped("lease_lost");
    services.news.announce([run.id]);
  }
  await failpoint("run.after_start");
  if (run.epoch > 1) await Scratch.sweep(services.scratchFolder, run.id);
  await using scratch = new Scratch(services.scratchFolder, run.id, run.epoch);
  const context = await contextOf(begun, loggedIn, scratch, tallies);
  const { bindings, redact, results } = context;
  let mayBeComplete = false;
  try {
    await executeNodes(context, isTracing() ? executeNodeInSpan : executeNode);
    mayBeComplete = true;
    await finishRun(services, context);
  } catch (error) {
    // Result objects of a run that did not complete are orphans. If the transaction broke off, it is unknown whether it committed;
    // then the sweep of orphaned objects decides.
    if (!mayBeComplete || error instanceof RunStopped)
      await services.blobs.remove([...results.values()].flatMap(({ blob }) => blob?.key ?? []));
    throw error;
  } finally {
    for (const binding of bindings) binding.release();
    if (redact.changes > 0) {
      services.log.warn(
        { runId: run.id, texts: redact.changes },
        "a target gave a secret of the run back; it was replaced before any node saw it or anything was stored",
      );
    }
  }
}

const executeNodeInSpan = async (context: RunContext, planned: PlannedNode): Promise<void> => {
  const { id, type } = planned.node;
  await inSpan(`node ${type}`, { attributes: { "latchkey.node.id": id } }, async () => {
    await executeNode(context, planned);
  });
};

/** The context of the nodes, and their entries in the journal. */
async function contextOf(
  { services, run, lease, plan, clock, signal }: RunLogin,
  { targets, secrets }: Awaited<ReturnType<typeof logIn>>,
  scratch: Scratch,
  tallies: Tallies,
): Promise<UnboundRun> {
  const door = openDoor(secrets, null);
  return {
    services,
    journal: databaseJournal(services, run, lease, clock, tallies),
    run,
    lease,
    plan,
    signal,
    scratch,
    redact: redactorOf(secrets),
    door,
    inputs: inputValues(services.blobs, run.hasInputs ? await listRunInputs(services.db, run.id) : []),
    targets,
    openTarget: openTarget(services.gate, plan.origins, null, undefined, null, door, {
      browsers: services.browsers,
      resources: [],
    }),
    bindings: [],
    outputs: new Map(run.epoch > 1 ? await readJournal(services, run) : []),
    results: new Map(),
    tallies,
    shown: { step: run.status === "queued" ? "running" : run.progressStep },
  };
}

import { findCachedVersion, lookUpDocument } from "#db/config-documents.ts";
import type { Lease } from "#db/runs/lease.ts";
import { failStep, saveStepObject } from "#db/runs/run-steps.ts";
import type { ClaimedRun } from "#db/runs/runs.ts";
import { resourcesOf, type Strategy } from "#domain/strategy.ts";
import { answerLine } from "#domain/shown-answer.ts";
import { must } from "#lib/assert.ts";
import type { Secret } from "#lib/secret.ts";
import type { LoginSession } from "#strategies/define-login.ts";
import { credentialOrigins, loginTypes } from "#strategies/registry.ts";
import type { SessionJar } from "#strategies/http/session-jar.ts";
import { openExpiringTarget } from "./expiring-target.ts";
import { ofLoggedIn } from "./browse.ts";
import { openDestination } from "./destination.ts";
import { namesOf } from "#engine/document-names.ts";
import { openDoor, type Door } from "#engine/redaction/door.ts";
import { openHandles } from "#engine/redaction/handles.ts";
import { logInWith, type LoginRequest } from "./login.ts";
import { LoginTrace } from "./login-trace.ts";
import type { RunPlan } from "#engine/plan-run.ts";
import { retryWhileLocked } from "#engine/waiting/retry-while-locked.ts";
import { guardReceivers, type BeforeHop } from "./record-use.ts";
import { openRenewingTarget } from "./renewing-target.ts";
import type { RunClock } from "#engine/waiting/run-clock.ts";
import { keepEvidence } from "#engine/outputs/keep-evidence.ts";
import type { RunJournal } from "#engine/run-context.ts";
import { RunFailure } from "#engine/run-ended.ts";
import { openRunSecrets, type RunSecrets } from "#engine/redaction/run-secrets.ts";
import type { EngineServices } from "#engine/services.ts";
import { mayQueue } from "#engine/waiting/join-queue.ts";
import { openTarget, type TargetSession } from "./target-session.ts";

/** A run whose credentials log in. */
export interface RunLogin {
  readonly services: EngineServices;
  readonly run: ClaimedRun;
  readonly lease: Lease;
  readonly plan: RunPlan;
  readonly clock: RunClock;
  readonly signal: AbortSignal;
  /** Closes the targets when the run has ended. */
  readonly opened: AsyncDisposableStack;
}

interface LoggedInRun {
  /** By slot. */
  readonly targets: ReadonlyMap<string, TargetSession>;
  readonly secrets: RunSecrets;
}

/**
 * All logins come before `running`; after a crash the run shows the step that it had (docs/decisions/0008). The steps of a test
 * login are recorded whatever its outcome; for any other login, the failed step and the answer, for operators. Throws RunFailure,
 * RunQueued.
 */
export async function logIn(begun: RunLogin): Promise<LoggedInRun> {
  const { services, run, lease } = begun;
  const trace = run.blueprintId === null ? new LoginTrace(services.db, lease, run.accountId) : undefined;
  const beganMs = performance.now();
  try {
    const loggedIn = await logInToAll(begun, trace);
    await trace?.end(null, []);
    return loggedIn;
  } catch (error) {
    if (!(error instanceof RunFailure)) throw error;
    const tookMs = performance.now() - beganMs;
    const shown = await shownLines(begun, error);
    if (trace) await trace.end(error, shown);
    else await noteFailure(begun, error, shown, tookMs);
    throw error;
  }
}

/** What operators see of a failed login: the answer, and what the page of its browser showed. */
async function shownLines(
  { services, run, lease }: RunLogin,
  { answer, evidence }: RunFailure,
): Promise<readonly string[]> {
  const { id, accountId } = run;
  const savePicture: RunJournal["savePicture"] = async (blob) =>
    await retryWhileLocked(async () => await saveStepObject(services.db, lease, { accountId, blob }));
  const place = { services, journal: { savePicture }, run: { id, accountId } };
  return [
    ...(answer === null ? [] : [answerLine(answer)]),
    ...(evidence === null ? [] : [await keepEvidence(place, evidence)]),
  ];
}

async function noteFailure(
  { services, run, lease }: RunLogin,
  { message: detail, loginStep: nodeId }: RunFailure,
  shown: readonly string[],
  tookMs: number,
): Promise<void> {
  if (nodeId === null || shown.length === 0) return;
  const step = { lease, accountId: run.accountId, nodeId, detail, log: shown.join("\n"), tookMs };
  await retryWhileLocked(async () => await failStep(services.db, step));
}

async function logInToAll(
  { services, run, lease, plan, clock, signal, opened }: RunLogin,
  trace: LoginTrace | undefined,
): Promise<LoggedInRun> {
  const targets = new Map<string, TargetSession>();
  const secrets = openRunSecrets([], namesOf(plan.blueprint));
  for (const credential of run.credentials) {
    const { strategyId, strategyVersion } = credential;
    const version = { accountId: run.accountId, id: strategyId, version: strategyVersion };
    const strategy = must(
      await findCachedVersion(services.db, "strategy", version),
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
      services,
      ...used,
      epoch: run.epoch,
      clock,
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
      // In the middle of a node, queueing would lose the data read so far.
      const mayStand = refused === undefined && mayQueue(run);
      const {
        session,
        secrets: known,
        fromTarget,
        fromEndUser,
      } = await logInWith({ ...request, refused, mayQueue: mayStand, signal: at });
      secrets.add(known);
      handles.add(fromTarget, fromEndUser);
      return session;
    };
    const first = await logInKnown(signal);
    const target = targetOf(
      { ...request, strategy, door },
      first,
      async (refused, at) => await logInKnown(at, refused),
    );
    opened.defer(async () => await target.close());
    targets.set(credential.slot, target);
  }
  const missing = plan.blueprint.credentials.find(({ slot }) => !targets.has(slot));
  if (missing) throw new RunFailure("credential_deleted", `The slot "${missing.slot}" has no credential.`);
  return { targets, secrets };
}

type Renew = (refused: Secret<LoginSession>, signal: AbortSignal) => Promise<Secret<LoginSession>>;

/** The target that a login has opened, and whether it can be opened again in the middle of a node. */
function targetOf(
  {
    services,
    origins,
    beforeHop,
    strategy,
    door,
  }: Pick<LoginRequest, "services" | "origins" | "beforeHop"> & {
    readonly strategy: Strategy;
    readonly door: Door;
  },
  first: Secret<LoginSession>,
  renew: Renew,
): TargetSession {
  const { type, expired } = strategy.login;
  const browsing = {
    browsers: services.browsers,
    resources: resourcesOf(strategy),
    ...ofLoggedIn(strategy),
  };
  const open = (session: Secret<LoginSession>, jar?: SessionJar): TargetSession =>
    openTarget(services.gate, origins, session, jar, beforeHop, door, browsing);
  // Sending a password again on every 401 would lock users out: only logins that renew without it do so.
  if (loginTypes.get(type)?.keepsItsOwnSession) return openRenewingTarget(first, open, renew);
  return expired === undefined ? open(first) : openExpiringTarget(first, open, renew);
}

/**
 * The hosts of the run's version (`origins`), and all origins that its login may use (`inForce`, hosts included). If a list was
 * narrowed since, that applies immediately. The credential's own origins are known once it is opened.
 */
async function originsOf(
  services: EngineServices,
  run: ClaimedRun,
  strategy: Strategy,
): Promise<{ readonly origins: readonly string[]; readonly inForce: readonly string[] }> {
  const now = must(await lookUpDocument(services.db, "strategy", run.accountId, strategy.id), "the strategy");
  const named = credentialOrigins(now.strategy);
  return {
    origins: strategy.hosts.filter((host) => now.strategy.hosts.includes(host)),
    inForce: credentialOrigins(strategy).filter((origin) => named.includes(origin)),
  };
}

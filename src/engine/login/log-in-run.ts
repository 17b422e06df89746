import { findCachedStrategyVersion, lookUpStrategy } from "#db/config-documents.ts";
import type { Lease } from "#db/runs/lease.ts";
import { failStep } from "#db/runs/run-steps.ts";
import type { ClaimedRun } from "#db/runs/runs.ts";
import type { Strategy } from "#domain/strategy.ts";
import { answerLine } from "#domain/shown-answer.ts";
import { must } from "#lib/assert.ts";
import type { Secret } from "#lib/secret.ts";
import type { LoginSession } from "#strategies/define-login.ts";
import { credentialOrigins, loginTypes } from "#strategies/registry.ts";
import type { SessionJar } from "#strategies/http/session-jar.ts";
import { openDestination } from "./destination.ts";
import { namesOf } from "#engine/document-names.ts";
import { openDoor } from "#engine/redaction/door.ts";
import { openHandles } from "#engine/redaction/handles.ts";
import { login } from "./login.ts";
import { LoginTrace } from "./login-trace.ts";
import type { RunPlan } from "#engine/plan-run.ts";
import { retryWhileLocked } from "#engine/waiting/retry-while-locked.ts";
import { guardReceivers, type BeforeHop } from "./record-use.ts";
import { openRenewingTarget } from "./renewing-target.ts";
import type { RunClock } from "#engine/waiting/run-clock.ts";
import { RunFailure } from "#engine/run-ended.ts";
import { openRunSecrets, type RunSecrets } from "#engine/redaction/run-secrets.ts";
import type { EngineServices } from "#engine/services.ts";
import { mayStandInLine } from "#engine/waiting/stand-in-line.ts";
import { openTarget, type TargetSession } from "./target-session.ts";

/** A test login: the same, and its steps are written down however it ends. */
export async function logInTraced(
  services: EngineServices,
  run: ClaimedRun,
  lease: Lease,
  plan: RunPlan,
  opened: AsyncDisposableStack,
  clock: RunClock,
  signal: AbortSignal,
): ReturnType<typeof logIn> {
  const trace = new LoginTrace(services.db, lease, run.accountId);
  try {
    const loggedIn = await logIn(services, run, lease, plan, opened, clock, signal, trace);
    await trace.end(null);
    return loggedIn;
  } catch (error) {
    if (error instanceof RunFailure) await trace.end(error);
    throw error;
  }
}

/** Any other login is written down when it fails: the step with what came instead, for operators. */
export async function logInNoted(
  services: EngineServices,
  run: ClaimedRun,
  lease: Lease,
  ...rest: [RunPlan, AsyncDisposableStack, RunClock, AbortSignal]
): ReturnType<typeof logIn> {
  const beganMs = performance.now();
  try {
    return await logIn(services, run, lease, ...rest);
  } catch (error) {
    if (error instanceof RunFailure && error.loginStep !== null && error.answer !== null) {
      const { message: detail, loginStep: nodeId, answer } = error;
      const step = { lease, accountId: run.accountId, nodeId, detail, log: answerLine(answer) };
      const tookMs = performance.now() - beganMs;
      await retryWhileLocked(async () => await failStep(services.db, { ...step, tookMs }));
    }
    throw error;
  }
}

/** All logins come before `running`; after a crash the run shows the step that it had (docs/decisions/0008). */
export async function logIn(
  services: EngineServices,
  run: ClaimedRun,
  lease: Lease,
  plan: RunPlan,
  opened: AsyncDisposableStack,
  clock: RunClock,
  signal: AbortSignal,
  trace?: LoginTrace,
): Promise<{ targets: ReadonlyMap<string, TargetSession>; secrets: RunSecrets }> {
  const targets = new Map<string, TargetSession>();
  const secrets = openRunSecrets([], namesOf(plan.blueprint));
  for (const credential of run.credentials) {
    const { strategyId, strategyVersion } = credential;
    const strategy = must(
      await findCachedStrategyVersion(services.db, run.accountId, strategyId, strategyVersion),
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
      // In the middle of a node the run would lose what that has read so far.
      const mayStand = refused === undefined && mayStandInLine(run);
      const {
        session,
        secrets: known,
        fromTarget,
        fromEndUser,
      } = await login(services, { ...request, refused, mayStandInLine: mayStand }, at);
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

import { readClock } from "#db/connection/clock.ts";
import { deleteLoginSession, takeTotpStep } from "#db/credentials/credentials.ts";
import type { StrategyVersion } from "#db/config-documents.ts";
import { OutboundError, type MayLeave } from "#domain/http-exchange.ts";
import { isJsonObject } from "#domain/json.ts";
import { must } from "#lib/assert.ts";
import { metrics } from "#lib/metrics.ts";
import { Secret } from "#lib/secret.ts";
import { LoginFailure, type LoginSession, type LoginType } from "#strategies/define-login.ts";
import { loginTypes } from "#strategies/registry.ts";
import { openJar } from "#strategies/http/session-jar.ts";
import { cacheLogin, openCachedLogin, openCredential, type CredentialReference } from "./open-credential.ts";
import { shownOf, withCourse } from "./login-course.ts";
import { loginContext, type LoginMeans } from "./login-context.ts";
import type { CredentialFields } from "./login-values.ts";
import { hiddenFrom, NOT_SHOWN } from "./login-secrecy.ts";
import { clearRejections, countRejection, refuseIfLocked } from "./login-lockout.ts";
import { givenSecrets, loggedInWith, secretValues, type LoggedIn } from "./login-secrets.ts";
import type { LoginTrace } from "./login-trace.ts";
import type { BeforeHop } from "./record-use.ts";
import { openBothNets } from "#engine/redaction/both-nets.ts";
import { openOAuthLogin } from "./open-credential-tokens.ts";
import { RunFailure, RunQueued } from "#engine/run-ended.ts";
import { openRunSecrets, type RunSecret } from "#engine/redaction/run-secrets.ts";
import type { EngineServices } from "#engine/services.ts";
import { openLimit } from "#engine/waiting/open-limit.ts";
import { takeLoginTurn, type LoginTurnRequest } from "./take-login-turn.ts";
import { nextTotpCode, type TotpSteps } from "./totp-code.ts";

export interface LoginRequest extends CredentialReference, LoginTurnRequest {
  readonly services: EngineServices;
  readonly signal: AbortSignal;
  /** The version that the run was triggered with. */
  readonly strategy: Pick<StrategyVersion, "version" | "strategy">;
  /** Origins that the credential may reach now: a host list that was narrowed since applies immediately. */
  readonly origins: readonly string[];
  readonly beforeHop: BeforeHop;
  /** Throws when another worker may have the run by now: logins count at the target. */
  readonly mayLeave: MayLeave;
  /** The session of an earlier login of the run, which the target no longer accepts. */
  readonly refused?: Secret<LoginSession> | undefined;
  readonly whileWaiting?: (wait: () => Promise<void>) => Promise<void>;
  /** For a test login: it ignores the cached login and logs every step. */
  readonly trace?: LoginTrace | undefined;
}

/**
 * Logs in with a credential, or reuses its cached login. Across all processes, only one login per credential runs at a time. Throws
 * RunFailure, or RunQueued when the logins before it take long.
 */
export async function logInWith(request: LoginRequest): Promise<LoggedIn> {
  const { services, signal } = request;
  const { loginTimeoutMs } = services;
  const hidden = hiddenFrom(request.strategy.strategy);
  if (hidden !== null) request.trace?.hideFrom(hidden);
  const endTurn = await takeLoginTurn(services, request, signal);
  // Only now, because waiting for other logins does not count.
  const limit = openLimit(services.clock, loginTimeoutMs);
  const bounded = AbortSignal.any([signal, limit.signal]);
  const whileWaiting = async (wait: () => Promise<void>): Promise<void> =>
    await limit.standStill(async () => await request.clock.standStill(wait));
  let clean = cleanerOf([]);
  try {
    const lockout = await refuseIfLocked(services, request);
    const fields = await openCredential(services, request);
    if (!fields) throw new RunFailure("credential_deleted", "The credential was deleted.");
    clean = cleanerOf(givenSecrets(request.strategy.strategy, fields));
    const session = await openSession({ ...request, signal: bounded, whileWaiting }, fields);
    const loggedIn = loggedInWith(request.strategy.strategy, fields, session);
    await clearRejections(services, request, lockout);
    metrics.logins.add({ result: "ok" });
    return loggedIn;
  } catch (error) {
    if (error instanceof RunQueued) throw error;
    const wasRejected = error instanceof LoginFailure && error.rejected;
    metrics.logins.add({ result: wasRejected ? "rejected" : signal.aborted ? "stopped" : "failed" });
    // The target has counted it, whatever happens to the run.
    const more = wasRejected ? await countRejection(services, request) : "";
    signal.throwIfAborted();
    if (bounded.aborted)
      throw new RunFailure("login", `The login took longer than ${loginTimeoutMs / 1000} s.`);
    if (error instanceof LoginFailure || error instanceof OutboundError) {
      const { id } = request.strategy.strategy;
      if (hidden !== null) throw new RunFailure("login", `${id}: ${NOT_SHOWN}${more}`);
      const shown = await shownOf(error);
      const kind = error instanceof LoginFailure ? error.kind : "login";
      throw new RunFailure(kind, `${id}: ${clean(error.message)}${more}`, shown);
    }
    throw error;
  } finally {
    limit.end();
    await endTurn();
  }
}

/** A login sees unredacted answers: both redaction nets apply here, to the only part of it that is stored. */
function cleanerOf(secrets: readonly RunSecret[]): (message: string) => string {
  const nets = openBothNets(openRunSecrets(secrets));
  return (message) => nets.message(message);
}

/** The cached session of an earlier login while it is valid, or a new login's session. */
async function openSession(
  request: LoginRequest,
  fields: Secret<CredentialFields>,
): Promise<Secret<LoginSession>> {
  const { services } = request;
  const { strategy, version } = request.strategy;
  const type = must(loginTypes.get(strategy.login.type), `login type ${strategy.login.type}`);
  if (strategy.cacheMs > 0 && !request.trace) {
    const cached = await openCachedLogin(services, request, version);
    // Its pages have just said that it is over, whatever `check` says.
    const isOver = request.refused !== undefined;
    if (cached && !isOver && (await isStillValid(request, type, fields, cached))) return cached;
    if (cached) await deleteLoginSession(services.db, request.credentialId);
  }
  const { type: _type, ...config } = strategy.login;
  const context = loginContext(meansOf(request), request, fields, openJar(), request.signal);
  const session = await type.login(context, config).catch((error: unknown) => {
    throw withCourse(error, strategy, fields, context.course());
  });
  // A login with too many values is not cached either.
  secretValues(strategy, fields, new Secret(session));
  // The codes of a cached login are long used up.
  if (strategy.cacheMs > 0 && session.isRestorable !== false)
    await cacheLogin(services, request, version, new Secret(session), strategy.cacheMs);
  return new Secret({ ...session, codes: context.codes });
}

/** docs/strategies.md#http: `check` also tests a cached login. Without a `check`, a cached login is used until it expires. */
async function isStillValid(
  request: LoginRequest,
  type: LoginType,
  fields: Secret<CredentialFields>,
  cached: Secret<LoginSession>,
): Promise<boolean> {
  const { type: _type, ...config } = request.strategy.strategy.login;
  if (!type.checkSession || !isJsonObject(config["check"])) return true;
  const jar = openJar(cached.reveal().cookies ?? undefined);
  const context = loginContext(meansOf(request), request, fields, jar, request.signal);
  try {
    await context.within(cached.reveal(), async (own) => await type.checkSession?.(own, config));
    return true;
  } catch (error) {
    if (error instanceof LoginFailure || error instanceof OutboundError) return false;
    throw error;
  }
}

/** In the service: the database's clock, unused codes, and tokens that are stored sealed. */
function meansOf(request: LoginRequest): LoginMeans {
  const { services, credentialId } = request;
  const nowMs = async (): Promise<number> => await readClock(services.db);
  const steps: TotpSteps = {
    nowMs,
    take: async (fieldKey, step) => await takeTotpStep(services.db, credentialId, fieldKey, step),
  };
  return {
    gate: services.gate,
    browsers: services.browsers,
    expressions: services.loginExpressions,
    clock: services.clock,
    nowMs,
    nextCode: async (key, stored, offsetMs, signal) =>
      await nextTotpCode(steps, key, stored, offsetMs, signal),
    oauth: openOAuthLogin(services, request),
  };
}

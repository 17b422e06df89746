import { setTimeout as sleep } from "node:timers/promises";
import { readClock } from "#db/clock.ts";
import { releaseLogin, takeLogin, deleteLoginSession } from "#db/credentials.ts";
import type { StrategyVersion } from "#db/config-documents.ts";
import type { BoundExpressions, Scope } from "#domain/expression.ts";
import { fieldVariable, secretTexts } from "#domain/field-values.ts";
import { OutboundError } from "#domain/http-exchange.ts";
import { isJsonObject, texts, type Json } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { analyseTemplate } from "#expressions/analyse.ts";
import { must } from "#lib/assert.ts";
import { Secret } from "#lib/secret.ts";
import {
  LoginFailure,
  type LoginContext,
  type LoginSession,
  type LoginType,
} from "#strategies/define-login.ts";
import { loginTypes } from "#strategies/registry.ts";
import { openJar, type SessionJar } from "#strategies/session-jar.ts";
import { targetClockOffsetMs } from "#strategies/target-clock.ts";
import {
  cacheLogin,
  openCachedLogin,
  openCredential,
  type CredentialFields,
  type CredentialReference,
} from "./open-credential.ts";
import { clearRejections, countRejection, refuseIfLocked } from "./login-lockout.ts";
import type { BeforeHop } from "./record-use.ts";
import { makeRedactor } from "./redact.ts";
import { openOAuthLogin } from "./open-credential-tokens.ts";
import { RunFailure } from "./run-ended.ts";
import type { EngineServices } from "./services.ts";
import { openTarget } from "./target-session.ts";
import { nextTotpCode } from "./totp-code.ts";

export interface LoginRequest extends CredentialReference {
  /** The version that the run was triggered with. */
  /** The version that the run was triggered with. */
  readonly strategy: Pick<StrategyVersion, "version" | "strategy">;
  /** Origins that the credential may reach now: a host list that was tightened since counts at once. */
  readonly origins: readonly string[];
  readonly beforeHop: BeforeHop;
}

export interface LoggedIn {
  readonly session: Secret<LoginSession>;
  /** What the second net looks for in whatever the run stores. */
  readonly secrets: readonly string[];
}

/** A login takes from a few milliseconds (a header) to many seconds (a page): asked often at first, then less. */
const LOGIN_POLL_MS = { first: 20, longest: 250 };

/**
 * Logs in with a credential, or goes on with its cached login. Logins of one credential are one at a time, on all
 * processes. Throws RunFailure.
 */
export async function login(
  services: EngineServices,
  request: LoginRequest,
  signal: AbortSignal,
): Promise<LoggedIn> {
  const { loginTimeoutMs } = services;
  const takenMs = loginTimeoutMs + limits.loginMarginMs;
  for (
    let pollMs = LOGIN_POLL_MS.first;
    !(await takeLogin(services.db, request.credentialId, request.runId, takenMs));
    pollMs = Math.min(pollMs * 1.5, LOGIN_POLL_MS.longest)
  ) {
    await sleep(pollMs, undefined, { signal });
  }
  // Only now: the wait for others' logins is not this one's time.
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(loginTimeoutMs)]);
  let redact = makeRedactor([]);
  try {
    const lockout = await refuseIfLocked(services, request);
    const fields = await openCredential(services, request);
    if (!fields) throw new RunFailure("credential_deleted", "The credential was deleted.");
    redact = makeRedactor(givenSecrets(request, fields));
    const session = await openSession(services, request, fields, bounded);
    await clearRejections(services, request, lockout);
    return { session, secrets: secretValues(request, fields, session) };
  } catch (error) {
    // The target has counted it, whatever becomes of the run.
    const more =
      error instanceof LoginFailure && error.rejected ? await countRejection(services, request) : "";
    signal.throwIfAborted();
    if (bounded.aborted)
      throw new RunFailure("login", `The login took longer than ${loginTimeoutMs / 1000} s.`);
    if (error instanceof LoginFailure || error instanceof OutboundError) {
      throw new RunFailure(
        "login",
        `${request.strategy.strategy.id}: ${redact.message(error.message)}${more}`,
      );
    }
    throw error;
  } finally {
    await releaseLogin(services.db, request.credentialId, request.runId);
  }
}

async function openSession(
  services: EngineServices,
  request: LoginRequest,
  fields: Secret<CredentialFields>,
  signal: AbortSignal,
): Promise<Secret<LoginSession>> {
  const { strategy, version } = request.strategy;
  const type = must(loginTypes.get(strategy.login.type), `login type ${strategy.login.type}`);
  if (strategy.cacheMs > 0) {
    const cached = await openCachedLogin(services, request, version);
    if (cached && (await stillGood(services, request, type, fields, cached, signal))) return cached;
    if (cached) await deleteLoginSession(services.db, request.credentialId);
  }
  const { type: _type, ...config } = strategy.login;
  const context = loginContext(services, request, fields, openJar(), signal);
  const session = new Secret(await type.login(context, config));
  if (strategy.cacheMs > 0) await cacheLogin(services, request, version, session, strategy.cacheMs);
  return session;
}

/** Design, page 3: `check` is also how a cached login is tested. Without one a cached login is good until its time is over. */
async function stillGood(
  services: EngineServices,
  request: LoginRequest,
  type: LoginType,
  fields: Secret<CredentialFields>,
  cached: Secret<LoginSession>,
  signal: AbortSignal,
): Promise<boolean> {
  const { type: _type, ...config } = request.strategy.strategy.login;
  if (!type.checkSession || !isJsonObject(config["check"])) return true;
  const context = loginContext(
    services,
    request,
    fields,
    openJar(cached.reveal().cookies ?? undefined),
    signal,
    cached,
  );
  try {
    await type.checkSession(context, config);
    return true;
  } catch (error) {
    if (error instanceof LoginFailure || error instanceof OutboundError) return false;
    throw error;
  }
}

function loginContext(
  services: EngineServices,
  request: LoginRequest,
  fields: Secret<CredentialFields>,
  jar: SessionJar,
  signal: AbortSignal,
  session: Secret<LoginSession> | null = null,
): LoginContext {
  const target = openTarget(services.gate, request.origins, session, jar, request.beforeHop);
  const usesCodes = request.strategy.strategy.fields.some(
    ({ key, type }) => type === "totp_secret" && fields.reveal().has(key),
  );
  const clock: TargetClock = { offsetMs: 0 };
  return {
    strategy: request.strategy.strategy,
    signal,
    field: (key) => fields.reveal().get(key),
    expressions: credentialExpressions(services, request, fields, clock, signal),
    send: async (outbound) => {
      const response = await target.send(outbound, signal);
      if (usesCodes) clock.offsetMs = targetClockOffsetMs(response.headers, await readClock(services.db));
      return response;
    },
    cookies: () => jar.serialise(),
    oauth: openOAuthLogin(services, request),
  };
}

/** What a login's answers have said of the target's clock so far. */
interface TargetClock {
  offsetMs: number;
}

/** Expressions with `$credential` in scope. A template that uses a one-time code takes a fresh one each time it is rendered. */
function credentialExpressions(
  services: EngineServices,
  request: LoginRequest,
  fields: Secret<CredentialFields>,
  clock: Readonly<TargetClock>,
  signal: AbortSignal,
): BoundExpressions {
  const types = new Map(request.strategy.strategy.fields.map(({ key, type }) => [key, type]));
  const credential = async (template: Json): Promise<Json> => {
    const variable: Record<string, Json> = {};
    // A field that this version of the strategy doesn't have any more was a text at least.
    for (const [key, value] of fields.reveal())
      variable[key] = fieldVariable(types.get(key) ?? "text", value);
    for (const key of usedCodes(template)) {
      const stored = types.get(key) === "totp_secret" ? fields.reveal().get(key) : undefined;
      if (stored === undefined) continue;
      const { credentialId } = request;
      variable[key] = {
        code: await nextTotpCode(services, credentialId, key, stored, clock.offsetMs, signal),
      };
    }
    return variable;
  };
  const within = async (template: Json, scope: Scope | undefined): Promise<Scope> => ({
    ...scope,
    variables: { ...scope?.variables, credential: await credential(template) },
  });
  const bound = services.loginExpressions.bind({});
  return {
    evaluate: async (source, scope) => await bound.evaluate(source, await within(`{{ ${source} }}`, scope)),
    render: async (template, scope) => await bound.render(template, await within(template, scope)),
    evaluateBatch: async (sources, rows) => {
      const scopes = await Promise.all(
        rows.map(
          async (row) =>
            await within(
              sources.map((source) => `{{ ${source} }}`),
              row,
            ),
        ),
      );
      return await bound.evaluateBatch(sources, scopes);
    },
  };
}

/** The fields whose `$credential.<field>.code` a template uses. */
function usedCodes(template: Json): ReadonlySet<string> {
  const uses = analyseTemplate(template).flatMap(({ analysis }) => (analysis.ok ? analysis.uses : []));
  return new Set(
    uses.filter((use) => use.name === "credential" && use.path[1] === "code").map((use) => use.path[0] ?? ""),
  );
}

/** Values that must not be stored if a target echoes them: the secret fields, and what the login gave. User names are not. */
function secretValues(
  request: LoginRequest,
  fields: Secret<CredentialFields>,
  session: Secret<LoginSession>,
): readonly string[] {
  const query = (session.reveal().query ?? []).map(([, value]) => value);
  const headers = Object.values(session.reveal().headers).map((value) =>
    value.replace(/^(basic|bearer) /i, ""),
  );
  return [...givenSecrets(request, fields), ...headers, ...query, ...sessionCookies(session)];
}

function givenSecrets(request: LoginRequest, fields: Secret<CredentialFields>): readonly string[] {
  return request.strategy.strategy.fields
    .filter((field) => field.secret)
    .flatMap((field) => secretTexts(field, fields.reveal().get(field.key) ?? ""));
}

/** Shorter ones (`lang=english`) are no secret, and would be found in ordinary text. */
const COOKIE_CHARACTERS_MIN = 16;

function sessionCookies(session: Secret<LoginSession>): readonly string[] {
  const cookies = session.reveal().cookies?.["cookies"];
  if (!Array.isArray(cookies)) return [];
  const values = cookies.flatMap((cookie: Json) =>
    isJsonObject(cookie) ? texts([cookie["value"] ?? null]) : [],
  );
  return values.filter((value) => value.length >= COOKIE_CHARACTERS_MIN);
}

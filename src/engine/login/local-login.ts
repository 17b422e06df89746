import type { FoundSecret, SecretReference } from "#domain/account-secret.ts";
import { OutboundError } from "#domain/http-exchange.ts";
import { limits } from "#domain/limits.ts";
import type { Strategy } from "#domain/strategy.ts";
import type { Evaluator } from "#expressions/evaluator.ts";
import { must } from "#lib/assert.ts";
import { systemClock } from "#lib/clock.ts";
import { Secret } from "#lib/secret.ts";
import type { Gate } from "#outbound/gate.ts";
import type { Browsers } from "#outbound/browser/browsers.ts";
import { LoginFailure } from "#strategies/define-login.ts";
import type { TokenSet } from "#strategies/oauth/oauth-access.ts";
import { loginTypes } from "#strategies/registry.ts";
import { openJar } from "#strategies/http/session-jar.ts";
import { loginContext, type LoginMeans } from "./login-context.ts";
import type { CredentialFields } from "./login-values.ts";
import {
  givenSecrets,
  loggedInWith,
  secretsOfAllFields,
  sessionSecrets,
  type LoggedIn,
} from "./login-secrets.ts";
import { shownOf, withCourse } from "./login-course.ts";
import { makeRedactor } from "#engine/redaction/redact.ts";
import { RunFailure } from "#engine/run-ended.ts";
import type { RunSecret } from "#engine/redaction/run-secrets.ts";
import { openTarget } from "./target-session.ts";
import { nextTotpCode, type TotpSteps } from "./totp-code.ts";
import type { Trace } from "#engine/local/trace.ts";

export interface LocalLoginServices {
  readonly gate: Gate;
  readonly browsers: Browsers;
  readonly loginExpressions: Evaluator;
  /** From the author's own file. */
  readonly clientSecret: (account: string, reference: SecretReference) => FoundSecret;
  readonly nowMs: () => number;
  /** The trace of all exchanges, if the author wants one. */
  readonly trace?: Trace | undefined;
}

/** A credential for a slot. */
export interface LocalCredential {
  readonly strategy: Strategy;
  readonly fields: Secret<CredentialFields>;
  /** For a login on the target's own pages. */
  readonly accessToken: Secret | null;
}

/**
 * Logs in for a local run, with the service's login types but without state: no cached login and no count of rejected logins. Throws
 * RunFailure.
 */
export async function logInLocally(
  services: LocalLoginServices,
  { strategy, fields, accessToken }: LocalCredential,
  signal: AbortSignal,
): Promise<LoggedIn> {
  const { type: name, ...config } = strategy.login;
  const type = must(loginTypes.get(name), `login type ${name}`);
  const { trace } = services;
  const place = {
    strategy: { strategy },
    origins: strategy.hosts,
    beforeHop: null,
    trace: trace && { begin: (step: string) => trace.at(step), skip: () => {}, answered: () => {} },
  };
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(limits.loginTimeoutMs)]);
  const means = meansOf(services, strategy.account, accessToken);
  const context = loginContext(means, place, fields, openJar(), bounded);
  const read: RunSecret[] = [...secretsOfAllFields(strategy, fields)];
  if (accessToken !== null) read.push(accessToken.reveal());
  try {
    const given = await type.login(context, config).catch((error: unknown) => {
      throw withCourse(error, strategy, fields, context.course());
    });
    const session = new Secret({ ...given, codes: context.codes });
    read.push(...sessionSecrets(strategy, fields, session));
    return loggedInWith(strategy, fields, session);
  } catch (error) {
    signal.throwIfAborted();
    if (bounded.aborted)
      throw new RunFailure("login", `The login took longer than ${limits.loginTimeoutMs / 1_000} s.`);
    if (!(error instanceof LoginFailure) && !(error instanceof OutboundError)) throw error;
    const redact = makeRedactor(secretsOfAllFields(strategy, fields));
    const shown = await shownOf(error);
    const kind = error instanceof LoginFailure ? error.kind : "login";
    throw new RunFailure(kind, `${strategy.id}: ${redact.message(error.message)}`, shown);
  } finally {
    read.push(...sessionSecrets(strategy, fields, new Secret(context.course().session)));
    await trace?.endLogin(read, givenSecrets(strategy, fields));
  }
}

function meansOf(
  { gate, browsers, loginExpressions, clientSecret, nowMs }: LocalLoginServices,
  account: string,
  accessToken: Secret | null,
): LoginMeans {
  const used = new Set<string>();
  const steps: TotpSteps = {
    nowMs: async () => nowMs(),
    take: async (key, step) => {
      const isFresh = !used.has(`${key} ${step}`);
      used.add(`${key} ${step}`);
      return isFresh;
    },
  };
  let kept: TokenSet | null = accessToken && {
    accessToken: accessToken.reveal(),
    refreshToken: null,
    expiresAtMs: null,
  };
  return {
    gate,
    browsers,
    expressions: loginExpressions,
    clock: systemClock,
    nowMs: async () => nowMs(),
    nextCode: async (key, stored, offsetMs, signal) =>
      await nextTotpCode(steps, key, stored, offsetMs, signal),
    oauth: {
      clientSecret: async (reference) => clientSecret(account, reference),
      nowMs: async () => nowMs(),
      send: async (request, origins) =>
        await openTarget(gate, origins, null, openJar()).send(request, new AbortController().signal),
      tokens: async () => kept,
      keep: async (tokens) => {
        kept = tokens;
      },
    },
  };
}

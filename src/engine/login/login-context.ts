import type { StrategyVersion } from "#db/config-documents.ts";
import type { BoundExpressions, Scope } from "#domain/expression.ts";
import { fieldVariable } from "#domain/field-values.ts";
import { resourcesOf } from "#domain/strategy.ts";
import type { MayLeave, OutboundResponse } from "#domain/http-exchange.ts";
import type { Json } from "#domain/json.ts";
import { analyseTemplate } from "#expressions/analyse.ts";
import type { Evaluator } from "#expressions/evaluator.ts";
import type { Clock } from "#lib/clock.ts";
import { Secret } from "#lib/secret.ts";
import type { Gate } from "#outbound/gate.ts";
import type { LoginContext, LoginSession, LoginSteps } from "#strategies/define-login.ts";
import type { OAuthLogin } from "#strategies/oauth/oauth-access.ts";
import type { SessionJar } from "#strategies/http/session-jar.ts";
import { targetClockOffsetMs } from "#strategies/target-clock.ts";
import type { Browsers } from "#outbound/browser/browsers.ts";
import { openBothNets } from "#engine/redaction/both-nets.ts";
import { browseToLogIn, ofLoggedIn, type BrowseMeans } from "./browse.ts";
import type { CredentialFields, LoginCourse } from "./login-values.ts";
import { secretsOfCourse } from "./login-course.ts";
import type { BeforeHop } from "./record-use.ts";
import { openTarget, type TargetSession } from "./target-session.ts";

/** The parts that differ between a login in the service and one in a local run. */
export interface LoginMeans {
  readonly gate: Gate;
  readonly browsers: Browsers;
  readonly expressions: Evaluator;
  /** For waits between requests. */
  readonly clock: Clock;
  nowMs(): Promise<number>;
  /** An unused one-time code of a field. */
  nextCode(fieldKey: string, stored: string, offsetMs: number, signal: AbortSignal): Promise<string>;
  readonly oauth: OAuthLogin;
}

/** Observers of the login. */
export type LoginWatch = Omit<LoginSteps, "read"> & { answered(status: number): void };

/** The strategy, and the target. */
interface LoginPlace {
  readonly strategy: Pick<StrategyVersion, "strategy">;
  readonly origins: readonly string[];
  readonly beforeHop: BeforeHop | null;
  readonly mayLeave?: MayLeave;
  /** The session of an earlier login of the run, which the target no longer accepts. */
  readonly refused?: Secret<LoginSession> | undefined;
  /** Called with the wait for a browser's place: its time is not the login's. */
  readonly whileWaiting?: BrowseMeans["whileWaiting"];
  /** Receives the login's course: for a test login, or a local run with a trace. */
  readonly trace?: LoginWatch | undefined;
}

/** The capabilities of a login type, the one-time codes that it used, and its course. */
export function loginContext(
  means: LoginMeans,
  request: LoginPlace,
  fields: Secret<CredentialFields>,
  jar: SessionJar,
  signal: AbortSignal,
): LoginContext & { readonly codes: readonly string[]; course(): LoginCourse } {
  const openAs = (session: Secret<LoginSession> | null): TargetSession =>
    openTarget(means.gate, request.origins, session, jar, request.beforeHop);
  const usesCodes = request.strategy.strategy.fields.some(
    ({ key, type }) => type === "totp_secret" && fields.reveal().has(key),
  );
  const clock: TargetClock = { offsetMs: 0 };
  const codes: string[] = [];
  const watched = watchCourse(request.trace);
  const meansWithCodes: LoginMeans = {
    ...means,
    nextCode: async (...asked) => {
      const code = await means.nextCode(...asked);
      codes.push(code);
      return code;
    },
  };
  const sendTo =
    (target: TargetSession): LoginContext["send"] =>
    async (outbound) => {
      watched.answer = null;
      const response = await target.send(outbound, signal, undefined, request.mayLeave);
      watched.answer = response;
      request.trace?.answered(response.status);
      if (usesCodes) clock.offsetMs = targetClockOffsetMs(response.headers, await means.nowMs());
      return response;
    };
  const pages = pagesOf(means, request, jar, () => {
    const { session } = courseOf(watched, jar, codes);
    const secrets = secretsOfCourse(request.strategy.strategy, fields, session);
    return secrets && openBothNets(secrets);
  });
  const context: LoginContext = {
    strategy: request.strategy.strategy,
    signal,
    field: (key) => fields.reveal().get(key),
    expressions: credentialExpressions(meansWithCodes, request, fields, clock, signal),
    send: sendTo(openAs(null)),
    browse: async (work) => await browseToLogIn({ ...pages, login: null }, signal, work),
    within: async (session, work) => {
      const login = new Secret(session);
      const target = openAs(login);
      // A page that asks for a sign-in says at once that the session has ended.
      const asLoggedIn = { ...pages, login, ...ofLoggedIn(request.strategy.strategy) };
      const browse: LoginContext["browse"] = async (look) => await browseToLogIn(asLoggedIn, signal, look);
      watched.within.push(session);
      try {
        return await work({ ...context, send: sendTo(target), browse });
      } finally {
        await target.close();
      }
    },
    sleep: async (ms) => {
      await means.clock.sleep(ms, signal);
    },
    cookies: () => jar.serialise(),
    refused: request.refused?.reveal(),
    steps: watched.steps,
    oauth: means.oauth,
  };
  return { ...context, codes, course: () => courseOf(watched, jar, codes) };
}

/** What the browsers of a login have in common. */
const pagesOf = (
  { browsers }: LoginMeans,
  { strategy, origins, beforeHop, mayLeave, whileWaiting }: LoginPlace,
  jar: SessionJar,
  nets: BrowseMeans["nets"],
): Omit<BrowseMeans, "login"> => {
  const resources = resourcesOf(strategy.strategy);
  return { browsers, origins, resources, beforeHop, mayLeave, whileWaiting, jar, nets };
};

/** The mutable form of LoginCourse, while the login runs. */
interface WatchedCourse {
  step: string | null;
  answer: OutboundResponse | null;
  readonly read: string[];
  /** Sessions of requests made before the login was complete. */
  readonly within: LoginSession[];
  readonly steps: LoginSteps;
}

function watchCourse(trace: LoginWatch | undefined): WatchedCourse {
  const watched: WatchedCourse = {
    step: null,
    answer: null,
    read: [],
    within: [],
    steps: {
      begin: (name) => {
        watched.step = name;
        trace?.begin(name);
      },
      skip: () => trace?.skip(),
      read: (secrets) => void watched.read.push(...secrets),
    },
  };
  return watched;
}

function courseOf(
  { step, answer, within, read }: WatchedCourse,
  jar: SessionJar,
  codes: readonly string[],
): LoginCourse {
  const headers = within.flatMap((session, index) =>
    Object.entries(session.headers).map(([name, value]) => [`${index} ${name}`, value] as const),
  );
  const session: LoginSession = {
    headers: Object.fromEntries(headers),
    query: within.flatMap(({ query = [] }) => query),
    cookies: jar.serialise(),
    extracted: { secret: read, open: [] },
    codes,
  };
  return { step, answer, session };
}

/** The target's clock, according to the login's answers so far. */
interface TargetClock {
  offsetMs: number;
}

/** Expressions with `$credential` in scope. Each rendering of a template that uses a one-time code takes a fresh one. */
function credentialExpressions(
  means: LoginMeans,
  request: LoginPlace,
  fields: Secret<CredentialFields>,
  clock: Readonly<TargetClock>,
  signal: AbortSignal,
): BoundExpressions {
  const types = new Map(request.strategy.strategy.fields.map(({ key, type }) => [key, type]));
  const credential = async (template: Json): Promise<Json> => {
    const variable: Record<string, Json> = {};
    // A field that this version of the strategy no longer has is treated as text.
    for (const [key, value] of fields.reveal())
      variable[key] = fieldVariable(types.get(key) ?? "text", value);
    for (const key of usedCodes(template)) {
      const stored = types.get(key) === "totp_secret" ? fields.reveal().get(key) : undefined;
      if (stored === undefined) continue;
      variable[key] = { code: await means.nextCode(key, stored, clock.offsetMs, signal) };
    }
    return variable;
  };
  const within = async (template: Json, scope: Scope | undefined): Promise<Scope> => ({
    ...scope,
    variables: { ...scope?.variables, credential: await credential(template) },
  });
  const bound = means.expressions.bind({});
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

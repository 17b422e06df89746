import { setTimeout as sleep } from "node:timers/promises";
import type { StrategyVersion } from "#db/config-documents.ts";
import type { BoundExpressions, Scope } from "#domain/expression.ts";
import { fieldVariable } from "#domain/field-values.ts";
import type { MayLeave } from "#domain/http-exchange.ts";
import type { Json } from "#domain/json.ts";
import { analyseTemplate } from "#expressions/analyse.ts";
import type { Evaluator } from "#expressions/evaluator.ts";
import { Secret } from "#lib/secret.ts";
import type { Gate } from "#outbound/gate.ts";
import type { LoginContext, LoginSession } from "#strategies/define-login.ts";
import type { OAuthLogin } from "#strategies/oauth-access.ts";
import type { SessionJar } from "#strategies/session-jar.ts";
import { targetClockOffsetMs } from "#strategies/target-clock.ts";
import type { LoginTrace } from "./login-trace.ts";
import type { BeforeHop } from "./record-use.ts";
import { openTarget, type TargetSession } from "./target-session.ts";

/** What the end user gave, by field key. */
export type CredentialFields = ReadonlyMap<string, string>;

/** What differs between a login of the service and one of an author's own run. */
export interface LoginMeans {
  readonly gate: Gate;
  readonly expressions: Evaluator;
  nowMs(): Promise<number>;
  /** A one-time code of a field that was not used before. */
  nextCode(fieldKey: string, stored: string, offsetMs: number, signal: AbortSignal): Promise<string>;
  readonly oauth: OAuthLogin;
}

/** With what strategy, and where to. */
interface LoginPlace {
  readonly strategy: Pick<StrategyVersion, "strategy">;
  readonly origins: readonly string[];
  readonly beforeHop: BeforeHop | null;
  readonly mayLeave?: MayLeave;
  /** What an earlier login of the run gave, and the target does not take any more. */
  readonly refused?: Secret<LoginSession> | undefined;
  /** Of a test login: what it writes down. */
  readonly trace?: LoginTrace | undefined;
}

/** What a login type works with, and nothing else; and the one-time codes that it was given. */
export function loginContext(
  means: LoginMeans,
  request: LoginPlace,
  fields: Secret<CredentialFields>,
  jar: SessionJar,
  signal: AbortSignal,
): LoginContext & { readonly codes: readonly string[] } {
  const openAs = (session: Secret<LoginSession> | null): TargetSession =>
    openTarget(means.gate, request.origins, session, jar, request.beforeHop);
  const usesCodes = request.strategy.strategy.fields.some(
    ({ key, type }) => type === "totp_secret" && fields.reveal().has(key),
  );
  const clock: TargetClock = { offsetMs: 0 };
  const codes: string[] = [];
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
      const response = await target.send(outbound, signal, undefined, request.mayLeave);
      request.trace?.answered(response.status);
      if (usesCodes) clock.offsetMs = targetClockOffsetMs(response.headers, await means.nowMs());
      return response;
    };
  const context: LoginContext = {
    strategy: request.strategy.strategy,
    signal,
    field: (key) => fields.reveal().get(key),
    expressions: credentialExpressions(meansWithCodes, request, fields, clock, signal),
    send: sendTo(openAs(null)),
    within: async (session, work) => {
      const target = openAs(new Secret(session));
      try {
        return await work({ ...context, send: sendTo(target) });
      } finally {
        await target.close();
      }
    },
    sleep: async (ms) => {
      await sleep(ms, undefined, { signal });
    },
    cookies: () => jar.serialise(),
    refused: request.refused?.reveal(),
    steps: request.trace,
    oauth: means.oauth,
  };
  return { ...context, codes };
}

/** What a login's answers have said of the target's clock so far. */
interface TargetClock {
  offsetMs: number;
}

/** Expressions with `$credential` in scope. A template that uses a one-time code takes a fresh one each time it is rendered. */
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
    // A field that this version of the strategy doesn't have any more was a text at least.
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

import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { Value } from "typebox/value";
import { openTarget } from "#engine/login/target-session.ts";
import { openEvaluator } from "#expressions/evaluator.ts";
import { LATEST_EDITION, type Edition } from "#domain/edition.ts";
import type { BoundExpressions } from "#domain/expression.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import { readStrategy, type Strategy } from "#domain/strategy.ts";
import { must } from "#lib/assert.ts";
import { Secret } from "#lib/secret.ts";
import { openGate } from "#outbound/gate.ts";
import {
  LoginFailure,
  type ConfigFinding,
  type LoginContext,
  type LoginSession,
} from "#strategies/define-login.ts";
import { loginTypes } from "#strategies/registry.ts";
import { openJar } from "#strategies/http/session-jar.ts";
import { CANARY } from "../outbound/targets.ts";

/** The service's own expressions, in their threads; one set for a process. */
const evaluator = openEvaluator();

export const FIELDS: readonly JsonObject[] = [
  { key: "username", label: "Username", type: "text" },
  { key: "password", label: "Password", type: "password" },
  { key: "totp", label: "Authenticator secret", type: "totp_secret", required: false },
  { key: "extra", label: "Headers", type: "headers", required: false },
  { key: "pem", label: "Certificate", type: "file", required: false },
];

export interface LoginSetup {
  readonly hosts: readonly string[];
  readonly credential?: { readonly [key: string]: string } | undefined;
  /** One-time codes in the order in which renderings take them. */
  readonly codes?: string[] | undefined;
  /** A cached session to go on with. */
  readonly session?: LoginSession | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Told of each wait between attempts; none is waited for. */
  readonly slept?: number[] | undefined;
  readonly edition?: Edition | undefined;
}

/** A login's capabilities over the real gate, jar and expressions; only the credential and its codes are the test's own. */
export function loginContext(t: TestContext, setup: LoginSetup): LoginContext {
  const gate = openGate({ allow: ["127.0.0.0/8", "::1/128"] });
  t.after(() => gate.close());
  const signal = setup.signal ?? new AbortController().signal;
  const jar = openJar(setup.session?.cookies);
  const openAs = (session: LoginSession | undefined) =>
    openTarget(gate, setup.hosts, session === undefined ? null : new Secret(session), jar);
  const target = openAs(setup.session);
  const credential = setup.credential ?? { username: "dana", password: CANARY };
  const context: LoginContext = {
    strategy: strategyOf(setup.hosts, setup.edition ?? LATEST_EDITION),
    signal,
    field: (key) => credential[key],
    expressions: withCodes(credential, setup.codes ?? []),
    send: (request) => target.send(request, signal),
    browse: () => Promise.reject(new Error("no browser")),
    within: async (session, work) => {
      const own = openAs(session);
      t.after(() => own.close());
      return await work({ ...context, send: (request) => own.send(request, signal) });
    },
    sleep: (ms) => {
      setup.slept?.push(ms);
      return Promise.resolve();
    },
    cookies: () => jar.serialise(),
  };
  return context;
}

function strategyOf(hosts: readonly string[], edition: Edition): Strategy {
  return readStrategy({
    strategy: "strat_test",
    account: "acme",
    hosts,
    fields: FIELDS,
    login: { type: "none" },
    edition,
  });
}

/** As the engine does it: each rendering that uses the code takes a fresh one. */
function withCodes(credential: { readonly [key: string]: string }, codes: string[]): BoundExpressions {
  const bound = (template: Json): BoundExpressions => {
    const totp =
      credential["totp"] === undefined
        ? {}
        : { totp: JSON.stringify(template).includes(".code") ? { code: must(codes.shift(), "a code") } : {} };
    return evaluator.bind({ credential: { ...credential, ...totp } });
  };
  return {
    evaluate: (source, scope) => bound(source).evaluate(source, scope),
    render: (template, scope) => bound(template).render(template, scope),
    evaluateBatch: (sources, rows) => bound([...sources]).evaluateBatch(sources, rows),
  };
}

/** What `apply` would find: the schema's word first, then the type's own check. */
export function check(type: string, config: JsonObject): readonly ConfigFinding[] {
  const login = must(loginTypes.get(type), type);
  const errors = Value.Errors(login.schema, config);
  if (errors.length > 0)
    return errors.map((error) => ({
      path: error.instancePath.split("/").slice(1),
      message: `schema: ${error.message}`,
    }));
  return (
    login.check?.(config, {
      fieldKeys: FIELDS.map(({ key }) => String(key)),
      fieldTypes: new Map(FIELDS.map(({ key, type }) => [String(key), String(type)])),
      hosts: ["https://portal.example"],
    }) ?? []
  );
}

export const findings = (type: string, config: JsonObject): readonly string[] =>
  check(type, config).map(({ path, message }) => `${path.join(".")}: ${message}`);

/** Checks the config as `apply` does, and logs in. */
export async function logIn(
  t: TestContext,
  type: string,
  config: JsonObject,
  setup: LoginSetup,
): Promise<LoginSession> {
  assert.deepEqual(findings(type, config), []);
  return must(loginTypes.get(type), type).login(loginContext(t, setup), config);
}

/** The login fails with this message, which holds no secret. */
export async function assertLoginFails(login: Promise<unknown>, message: RegExp): Promise<void> {
  const error: unknown = await login.then(
    () => assert.fail("the login should have failed"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof LoginFailure, `a LoginFailure, not ${String(error)}`);
  assert.match(error.message, message);
  assert.ok(!`${error.message}${error.stack ?? ""}`.includes(CANARY), error.message);
  assert.equal(error.cause, undefined);
}

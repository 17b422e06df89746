import type { Static } from "typebox";
import { conditionFindings } from "#answers/browser/condition.ts";
import { stepFindings } from "#answers/browser/check-steps.ts";
import type { StepConfig } from "#answers/browser/define-step.ts";
import { NO_SINK, runSteps } from "#answers/browser/run-steps.ts";
import { StepFailure } from "#answers/browser/step-failure.ts";
import { conditionSchema, evidenceSchema, stepsSchema } from "#answers/browser/step-schema.ts";
import type { ConfigPath } from "#domain/config-problem.ts";
import { TEMPLATE } from "#domain/expression.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { resourcesOf } from "#domain/strategy.ts";
import { readConfig } from "#domain/read-config.ts";
import { Type } from "#lib/type.ts";
import {
  defineLogin,
  LoginFailure,
  type ConfigFinding,
  type LoginBrowser,
  type LoginContext,
  type LoginSession,
} from "#strategies/define-login.ts";
import { checkExpect, checkRequest } from "#strategies/http/http-check-config.ts";
import { checkedRequest } from "#strategies/http/http-schema.ts";
import { runCheck } from "#strategies/http/http-steps.ts";
import { renderAt } from "#strategies/login-expressions.ts";
import { checkHeaderNames, sessionHeaders } from "#strategies/login-headers.ts";

const schema = Type.Object(
  {
    steps: stepsSchema("login", "The steps, in order."),
    resources: Type.Optional(
      Type.Array(Type.String(), {
        maxItems: 20,
        description:
          "Origins besides the `hosts` from which the pages may load scripts, pictures and data, such as `https://cdn.example.com`. Their scripts can read what is typed into the pages, so the credential is bound to them like to the hosts.",
      }),
    ),
    evidence: Type.Optional(evidenceSchema(["on_failure", "off"])),
    expired: Type.Optional(
      conditionSchema(
        "login",
        "What a page shows in a `browser` node when the session has ended, such as `{ url: /login** }`. The run then logs in again, once.",
      ),
    ),
    session: Type.Optional(
      Type.Object(
        {
          headers: Type.Record(Type.String(), Type.String(), {
            minProperties: 1,
            [TEMPLATE]: "login",
            description:
              "Headers that `http` nodes send with every request, besides the cookies. `$storage.local` and `$storage.session` have the page's storage after the last step.",
          }),
        },
        {
          additionalProperties: false,
          description: "What requests of `http` nodes have besides the cookies of the browser.",
        },
      ),
    ),
    check: Type.Optional(
      Type.Object(
        {
          request: Type.Optional(checkedRequest.request),
          expect: checkedRequest.expect,
          steps: Type.Optional(
            stepsSchema(
              "login",
              "Instead of a request: steps in a browser, for a session that nothing but a page shows. The first one opens a page, and the last one is an `expect`.",
            ),
          ),
        },
        {
          additionalProperties: false,
          description:
            "Finds out after the login whether the target accepts it: by a request, or by steps. Also used to test a cached session, and by a test login.",
        },
      ),
    ),
  },
  { additionalProperties: false },
);
type BrowserLogin = Static<typeof schema>;

/** docs/logins/browser.md. */
export const login = defineLogin({
  type: "browser",
  description:
    "Steps in a browser, for targets whose sign-in is drawn by script. The session consists of the cookies and storage of the browser, and `session.headers`.",
  schema,
  sessionVariables: ["storage"],
  sendsTo: (config) => resourcesOf({ login: { ...config, type: "browser" } }),
  check: (config) => [
    ...stepFindings(config["steps"], "login", ["steps"]),
    ...expiredFindings(config["expired"]),
    ...ofSession(config as unknown as BrowserLogin),
    ...checkFindings(config["check"]),
  ],
  warn: ({ steps, check }, isCached) => [
    ...(isCached && check === undefined
      ? [
          {
            path: [],
            message:
              "a cached session is used until it expires, even if the target has ended it; add a `check`",
          },
        ]
      : []),
    ...(check === undefined && !JSON.stringify(steps ?? []).includes('"expect":')
      ? [
          {
            path: ["steps"],
            message:
              "nothing tells a successful login from a refused one; add an `expect` with `rejected`, or a `check`",
          },
        ]
      : []),
  ],
  login: runLogin,
  checkSession: async (context, config) => await checkKept(context, readConfig(schema, config)),
});

/** One way or the other. */
function checkFindings(check: Json | undefined): readonly ConfigFinding[] {
  if (!isJsonObject(check)) return [];
  const { request, expect, steps } = check;
  const path = ["check"];
  if (steps === undefined)
    return request === undefined ? [{ path, message: "needs `request` or `steps`" }] : [];
  const others = [request !== undefined && "request", expect !== undefined && "expect"].filter(
    (key) => key !== false,
  );
  return [
    ...others.map((key) => ({
      path: [...path, key],
      at: "key" as const,
      message: "can't stand beside `steps`; a check is a request or steps",
    })),
    ...(JSON.stringify(steps).includes('"expect":')
      ? []
      : [
          {
            path: [...path, "steps"],
            message: "must have an `expect`, which says what only a session shows",
          },
        ]),
    ...stepFindings(steps, "login", [...path, "steps"]),
  ];
}

/** It is looked at in nodes, whose templates know nothing of the credential. */
function expiredFindings(expired: Json | undefined): readonly ConfigFinding[] {
  if (!isJsonObject(expired)) return [];
  const path = ["expired"];
  return JSON.stringify(expired).includes("{{")
    ? [{ path, message: "must not have templates; write the text itself" }]
    : conditionFindings(expired, path);
}

const ofSession = ({ session, check }: BrowserLogin) => [
  ...checkHeaderNames(session?.headers, ["session", "headers"]),
  ...checkRequest(check?.request, ["check", "request"]),
  ...checkExpect(check?.expect, ["check", "expect"]),
];

async function runLogin(context: LoginContext, raw: JsonObject): Promise<LoginSession> {
  const config = readConfig(schema, raw);
  const session = await inBrowser(context, async (browser) => await logInBy(context, browser, config));
  if (config.check?.request !== undefined)
    await context.within(session, async (own) => await checkByRequest(own, config));
  return session;
}

/** The session is that of `context`. */
async function checkKept(context: LoginContext, config: BrowserLogin): Promise<void> {
  const steps = config.check?.steps;
  if (steps === undefined) return await checkByRequest(context, config);
  await inBrowser(context, async (browser) => {
    await doSteps(context, browser, config, { steps, root: ["check", "steps"] });
  });
}

async function checkByRequest(context: LoginContext, { check }: BrowserLogin): Promise<void> {
  if (check?.request === undefined) return;
  const { request, expect } = check;
  await runCheck(context, { request, ...(expect !== undefined && { expect }) }, {});
}

async function inBrowser<T>(context: LoginContext, work: (browser: LoginBrowser) => Promise<T>): Promise<T> {
  try {
    return await context.browse(work);
  } catch (error) {
    if (!(error instanceof StepFailure)) throw error;
    const { code, kind, path, message, evidence } = error;
    const place = path.length === 0 ? "login:" : "login";
    throw new LoginFailure(`${place} ${message}`, { rejected: code === "rejected", kind, evidence });
  }
}

async function logInBy(
  context: LoginContext,
  browser: LoginBrowser,
  config: BrowserLogin,
): Promise<LoginSession> {
  const { steps, check } = config;
  await doSteps(context, browser, config, { steps, root: ["steps"] });
  // In the browser that is open: to start another one for the session that it has would take a second.
  await doSteps(context, browser, config, { steps: check?.steps ?? [], root: ["check", "steps"] });
  const { state, storage, secrets, isRestorable } = await browser.capture();
  context.steps?.read(secrets);
  const place = "login: session.headers";
  const variables = { storage: { local: parsed(storage.local), session: parsed(storage.session) } };
  const headers = config.session?.headers ?? {};
  const rendered = await renderAt(context.expressions, place, headers, { variables });
  return {
    headers: sessionHeaders(rendered, place),
    cookies: context.cookies(),
    extracted: { secret: secrets, open: [] },
    browser: state,
    ...(!isRestorable && { isRestorable }),
  };
}

/** `root`: where the steps stand in the login. */
async function doSteps(
  context: LoginContext,
  browser: LoginBrowser,
  { evidence }: BrowserLogin,
  { steps, root }: { readonly steps: readonly StepConfig[]; readonly root: ConfigPath },
): Promise<void> {
  let place = "login";
  await runSteps(
    {
      place: "login",
      root,
      browser,
      sink: NO_SINK,
      looks: evidence !== "off",
      render: async (template) => await renderAt(context.expressions, place, template),
      begin: (step) => {
        place = `login ${step}`;
        context.steps?.begin(place);
      },
    },
    steps,
  );
}

/** Many applications keep JSON in their storage: objects and lists are read, everything else stays the text that it is. */
function parsed(entries: Readonly<Record<string, string>>): JsonObject {
  return Object.fromEntries(
    Object.entries(entries).map(([name, text]): [string, Json] => {
      if (!/^\s*[[{]/.test(text)) return [name, text];
      try {
        const value = JSON.parse(text) as Json;
        return [name, isJsonObject(value) || Array.isArray(value) ? value : text];
      } catch {
        return [name, text];
      }
    }),
  );
}

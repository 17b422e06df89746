import { readFileSync } from "node:fs";
import { join } from "node:path";
import Fastify from "fastify";
import { createOperator } from "#actions/operators/manage-operators.ts";
import { newSessionToken } from "#actions/operators/sign-in.ts";
import { RefusedSignIns } from "#actions/operators/refused-sign-ins.ts";
import type { Services } from "#actions/services.ts";
import { readJsonObject } from "#api/read-body.ts";
import { renderProblem } from "#api/render-problem.ts";
import { insertOperatorSession } from "#db/operators/operator-sessions.ts";
import { confirmTotp, limitPassword, lockOperator, saveTotpNonce } from "#db/operators/operators.ts";
import type { Database } from "#db/connection/pool.ts";
import type { OperatorRole } from "#domain/operator.ts";
import { must } from "#lib/assert.ts";
import { openLog } from "#lib/log.ts";
import { newId } from "#lib/new-id.ts";
import { Passwords } from "#lib/password.ts";
import { openSigning, readSigningKey, type Signing } from "#lib/signing.ts";
import { TokenBuckets } from "#lib/token-bucket.ts";
import { renderFormPreview } from "#hosted/form-preview.ts";
import { registerOperator } from "#operator/routes.ts";
import { moveClock, setClock } from "../clock.ts";
import { install, type Installation, type RunningService } from "../service.ts";
import { openBrowser, sendPlain, type Browser, type OperatorAnswer } from "./browser.ts";

const QUIET = openLog({ level: "error", format: "json" }, { write: () => {} });

export interface Someone {
  readonly id: string;
  readonly email: string;
  readonly password: string;
}

/** An installation that serves, and operators who use it. */
export interface OperatorStage extends AsyncDisposable {
  readonly installation: Installation;
  readonly service: RunningService;
  readonly db: Database;
  readonly signing: Signing;
  /** Made by the action that the command line calls. */
  operator(role?: OperatorRole, accounts?: readonly string[] | null, email?: string): Promise<Someone>;
  /** With a browser that has signed in. */
  signedIn(role?: OperatorRole): Promise<Someone & { readonly browser: Browser }>;
  /** A browser with a session that the test has put there: no password is derived, and a second factor counts as given. */
  holding(operator: Someone, isSteppedUp?: boolean): Promise<Browser>;
  /** As a program with this operator token: no cookie, no origin, no CSRF token. */
  withToken(token: string, method: string, path: string, body?: unknown): Promise<OperatorAnswer>;
  /** As if the operator had an authenticator app. */
  giveSecondFactor(operator: Someone): Promise<void>;
  /** What the parts of this process work with, where a test calls them itself; real ones. */
  services(): Services;
  /** The operator API in this process, behind a proxy that has TLS. */
  serveHere(publicUrl: string): Promise<AsyncDisposable & { readonly url: string }>;
  moveClock(by: string): Promise<void>;
  /** Time stands still: however slow the machine is, no wait is over. */
  stopClock(): Promise<void>;
  /** What is on record about a subject, but for its making. */
  actions(subject: string): Promise<readonly string[]>;
}

export async function openOperatorStage(
  environment: Readonly<Record<string, string>> = {},
  roles?: Parameters<Installation["serve"]>[1],
): Promise<OperatorStage> {
  const installation = await install(environment);
  const service = await installation.serve({}, roles);
  const { db } = installation.database;
  const signing = openSigning(
    readSigningKey(readFileSync(join(installation.dataFolder, "signing.key"), "utf8")),
  );
  let made = 0;
  const operator = async (
    role: OperatorRole = "viewer",
    accounts: readonly string[] | null = null,
    email = `somebody-${made++}@example.com`,
  ): Promise<Someone> => {
    const context = { db, signing, actor: { kind: "cli" } } as const;
    const someone = await createOperator(context, { email, role, accounts });
    // As if they had chosen it themselves.
    await limitPassword(db, someone.id, null);
    return someone;
  };
  const services = (): Services =>
    ({
      db,
      signing,
      passwords: new Passwords(signing.operators.passwordKey),
      refusedSignIns: new RefusedSignIns(db, signing.audit, QUIET),
      buckets: new TokenBuckets(),
      clientOf: () => "192.0.2.1",
      operatorSignIn: { byPassword: true, oidc: null },
    }) as unknown as Services;
  return {
    installation,
    service,
    db,
    signing,
    operator,
    signedIn: async (role) => {
      const someone = await operator(role);
      const browser = openBrowser(service.url);
      const answer = await browser.signIn(someone.email, someone.password);
      if (answer.status !== 201) throw new Error(answer.text);
      return { browser, ...someone };
    },
    holding: async (someone, isSteppedUp = true) => {
      const browser = openBrowser(service.url);
      const token = newSessionToken();
      await insertOperatorSession(db, {
        id: newId("ops_"),
        operatorId: someone.id,
        tokenHash: signing.operators.sessionHash(token),
        lifetimeMs: 3_600_000,
        isSteppedUp,
        signedInBy: "password",
        address: "192.0.2.1",
        userAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
      });
      browser.cookie = `latchkey_operator=${token}`;
      browser.csrf = signing.operators.csrf(token);
      return browser;
    },
    withToken: async (token, method, path, body) => {
      const text = body === undefined ? undefined : JSON.stringify(body);
      const headers = {
        Authorization: `Bearer ${token}`,
        ...(text === undefined
          ? {}
          : { "Content-Type": "application/json", "Content-Length": String(Buffer.byteLength(text)) }),
      };
      return await sendPlain(`${service.url}/operator/v1${path}`, method, headers, text);
    },
    giveSecondFactor: async ({ id }) =>
      await db.transaction(async (tx) => {
        const locked = async () => must(await lockOperator(tx, id), "the operator");
        await saveTotpNonce(tx, await locked(), Buffer.alloc(16));
        await confirmTotp(tx, await locked(), 0);
      }),
    services,
    serveHere: async (publicUrl) => {
      const app = Fastify();
      for (const method of app.supportedMethods)
        app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
      registerOperator(
        app,
        { ...services(), publicUrl: () => publicUrl },
        { renderProblem, readJsonObject, renderFormPreview },
      );
      return {
        url: await app.listen({ host: "127.0.0.1", port: 0 }),
        [Symbol.asyncDispose]: async () => await app.close(),
      };
    },
    moveClock: async (by) => await moveClock(db, by),
    stopClock: async () => {
      const [now] = await db.query<{ at: string }>("select app_now()::text as at");
      await setClock(db, `timestamptz '${now?.at}'`);
    },
    actions: async (subject) =>
      (
        await db.query<{ action: string }>(
          `select action from audit_entry where subject_id = $1 and action <> 'operator.create' order by occurred_at, id`,
          [subject],
        )
      ).map(({ action }) => action),
    [Symbol.asyncDispose]: async () => await installation[Symbol.asyncDispose](),
  };
}

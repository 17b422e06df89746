/** A login that is tried when it is submitted, and processes that die at each of its points: one outcome, and the right one. */
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import type { Failpoint } from "#lib/failpoint.ts";
import { openCaller, type Caller } from "../caller.ts";
import { until } from "../eventually.ts";
import { assertInvariants } from "../invariants.ts";
import { install, type ServiceProcess } from "../service.ts";
import { csrfOf, send, submit, type WireAnswer } from "../hosted/form-visitor.ts";
import { acmeDocument } from "../hosted/hosted-setup.ts";
import {
  look,
  PASSWORD,
  startLoginTarget,
  STRATEGY,
  submitToTry,
  triedDocuments,
  type LoginTarget,
} from "../hosted/tried-login-stage.ts";

let target: LoginTarget;
let installation: Awaited<ReturnType<typeof install>>;
let apiKey: string;
const running: ServiceProcess[] = [];

async function serve(...asked: Parameters<typeof installation.serveProcess>): Promise<ServiceProcess> {
  const service = await installation.serveProcess(...asked);
  running.push(service);
  return service;
}

before(async () => {
  target = await startLoginTarget();
  installation = await install();
  await installation.apply(acmeDocument(), ...triedDocuments(target.origin));
  apiKey = await installation.createKey("acme");
});
afterEach(async () => {
  // A worker that is left would take the next test's run.
  for (const service of running.splice(0)) await service.end("SIGKILL").catch(() => {});
  await assertInvariants(installation, { audit_unchained: "the workers are killed" });
});
after(async () => {
  await installation[Symbol.asyncDispose]();
  target.close();
});

interface Session {
  readonly id: string;
  /** The path of its page, whatever process serves it. */
  readonly path: string;
}

async function openSession(caller: Caller): Promise<Session> {
  const { body } = await caller.post("/credential-sessions", { strategy_id: STRATEGY });
  return { id: body.id, path: new URL(body.hosted_url).pathname };
}

const at = (service: ServiceProcess, { path }: Session): string => new URL(path, service.url).href;
const armed = (point: Failpoint): Record<string, string> => ({ LATCHKEY_FAILPOINTS: `${point}=kill` });
const death = async ({ child }: ServiceProcess): Promise<unknown> =>
  await new Promise((resolve) => child.once("exit", (_code, signal) => resolve(signal)));
const count = async (sql: string, id: string): Promise<number> =>
  Number((await installation.database.db.query<{ n: string }>(sql, [id]))[0]?.n);
const credentialsOf = async ({ id }: Session): Promise<number> =>
  await count("select count(*) as n from credential where session_id = $1", id);
const refusalsOf = async ({ id }: Session): Promise<number> =>
  await count("select login_refusals as n from credential_session where id = $1", id);

async function lookToTheEnd(service: ServiceProcess, session: Session): Promise<WireAnswer> {
  let answer = await send(at(service, session));
  for (let looks = 0; looks < 12 && /class="spinner"/.test(answer.text); looks++)
    answer = await look(at(service, session), answer.text);
  return answer;
}

test("killed before the candidate is committed: nothing was stored, nobody logs in, and the form is there again", async () => {
  const dying = await serve(armed("session.after_candidate"), ["api"]);
  const session = await openSession(openCaller(dying.url, apiKey));
  const { text } = await send(at(dying, session));
  const died = death(dying);
  await assert.rejects(
    submit(at(dying, session), { username: "ada", password: PASSWORD }, { csrf: csrfOf(text) }),
  );
  assert.equal(await died, "SIGKILL");
  assert.equal(await credentialsOf(session), 0);
  const service = await serve({}, ["api"]);
  assert.match((await send(at(service, session))).text, /class="connect"/);
});

/** Of the run that logs in: its worker dies, another one carries on. */
const OF_WORKERS: readonly (readonly [Failpoint, password: string])[] = [
  ["run.after_claim", PASSWORD],
  ["run.before_login", PASSWORD],
  ["run.after_login", PASSWORD],
  ["run.before_complete", PASSWORD],
  ["run.after_complete", PASSWORD],
  ["run.before_fail", "not the password"],
  ["run.after_fail", "not the password"],
];

for (const [point, password] of OF_WORKERS)
  test(`a worker is killed at ${point}: the next one goes on, and the end user is told the outcome`, async () => {
    const api = await serve({}, ["api"]);
    const session = await openSession(openCaller(api.url, apiKey));
    const dying = await serve(armed(point), ["worker"]);
    const died = death(dying);
    await submitToTry(at(api, session), `user of ${point}`, password);
    assert.equal(await died, "SIGKILL");
    await serve({}, ["worker"]);
    const outcome = await lookToTheEnd(api, session);
    if (password === PASSWORD) {
      assert.equal(outcome.status, 200);
      // Stored if the next worker came too late.
      assert.match(outcome.text, /accepted your login|did not say in time/);
      assert.equal(await credentialsOf(session), 1);
    } else {
      assert.match(outcome.text, /did not accept this login/);
      assert.equal(outcome.status, 422);
      assert.equal(await credentialsOf(session), 0);
      assert.equal(await refusalsOf(session), 1);
    }
  });

for (const [what, password] of [
  ["accepted", PASSWORD],
  ["refused", "not the password"],
] as const)
  test(`killed while it settles a login that was ${what}: it is settled once, by the next process that looks`, async () => {
    await serve({}, ["worker"]);
    const dying = await serve(armed("session.after_verdict"), ["api"]);
    const session = await openSession(openCaller(dying.url, apiKey));
    const died = death(dying);
    const page = await submitToTry(at(dying, session), "ada", password);
    await assert.rejects(look(at(dying, session), page.text));
    assert.equal(await died, "SIGKILL");
    // Nobody opens the page again: a worker settles it.
    await until("it is settled", async () => {
      const settled = await count(
        "select count(*) as n from credential where session_id = $1 and candidate_at is not null",
        session.id,
      );
      return settled === 0;
    });
    assert.equal(await credentialsOf(session), what === "accepted" ? 1 : 0);
    assert.equal(await refusalsOf(session), what === "accepted" ? 0 : 1);
  });

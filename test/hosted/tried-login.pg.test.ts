/** A login that is tried when it is submitted: what the end user is told, and what is kept. Real HTTP, a real worker, a real target. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { load } from "cheerio";
import { listRuns } from "#actions/operators/list-runs.ts";
import { reconcileRestore } from "#actions/credentials/restore-reconcile.ts";
import { limits } from "#domain/limits.ts";
import { openSigning, readSigningKey } from "#lib/signing.ts";
import { until } from "../eventually.ts";
import { assertInvariants } from "../invariants.ts";
import { csrfOf, send, submit } from "./form-visitor.ts";
import { setUpHosted, type Hosted, type SessionBody } from "./hosted-setup.ts";
import {
  BLUEPRINT,
  look,
  PASSWORD,
  startLoginTarget,
  STRATEGY,
  submitToTry,
  triedDocuments,
  tryLogin,
  type LoginTarget,
} from "./tried-login-stage.ts";

let target: LoginTarget;
let hosted: Hosted;

before(async () => {
  target = await startLoginTarget();
  hosted = await setUpHosted(...triedDocuments(target.origin));
});
afterEach(async () => {
  target.release();
  await assertInvariants(hosted.installation);
});
after(async () => {
  target.close();
  await hosted[Symbol.asyncDispose]();
});

const open = async (): Promise<SessionBody> => await hosted.session({ strategy_id: STRATEGY });
const loginsOf = (username: string): number =>
  target.logins.filter((login) => login.username === username).length;
const rows = async <Row extends object>(text: string, ...values: string[]): Promise<readonly Row[]> =>
  await hosted.installation.database.db.query<Row>(text, values);

const noticeOf = (page: string): string => load(page)("[role=alert] h2").text();

/** The candidate of a session. */
async function candidateOf({ id }: SessionBody): Promise<string | undefined> {
  const [row] = await rows<{ id: string }>(
    "select id from credential where session_id = $1 and candidate_at is not null",
    id,
  );
  return row?.id;
}

/** As if it had been tried for longer than a login is. */
const age = async ({ id }: SessionBody): Promise<unknown> =>
  await rows(
    `update credential set candidate_at = app_now() - ${limits.loginCheckMs} * interval '1 ms' where session_id = $1`,
    id,
  );

test("a wrong login is told at once and nothing of it is kept; the right one completes the session, and its first run does not log in again", async () => {
  const session = await open();
  const wrong = await tryLogin(session.hosted_url, "ada", "not the password");
  assert.equal(wrong.status, 422);
  assert.equal(noticeOf(wrong.text), "Northwind did not accept this login");
  assert.equal(load(wrong.text)("input[name=username]").attr("value"), "ada");
  assert.ok(!wrong.text.includes("not the password"));
  const still = await hosted.read(session.id);
  assert.deepEqual([still.status, still.credential_id], ["pending", null]);
  // Operators see that it was no test of a credential.
  const [tried] = (await listRuns(hosted.installation.database.db, {}, null)).items;
  assert.deepEqual([tried?.is_sign_in, tried?.failure, tried?.tested], [true, "login", null]);
  assert.equal(await hosted.credentialsOf(session.id), 0);
  // Its form and its languages lead on from the address at which the outcome was told.
  assert.equal(
    new URL(load(wrong.text)("form.connect").attr("action") ?? "", `${session.hosted_url}/check`).href,
    session.hosted_url,
  );
  assert.match((await send(`${session.hosted_url}/check?lang=de`)).text, /nicht angenommen/);
  // Anyone who opens the link again is told the same.
  assert.equal(noticeOf((await send(session.hosted_url)).text), "Northwind did not accept this login");

  const right = await tryLogin(session.hosted_url, "ada", PASSWORD);
  assert.equal(right.status, 200);
  assert.match(right.text, /accepted your login/);
  const done = await hosted.read(session.id);
  assert.equal(done.status, "completed");
  const run = await hosted.acme.post(`/blueprints/${BLUEPRINT}/trigger`, {
    credential_id: done.credential_id,
  });
  assert.equal((await hosted.acme.waitForRun(run.body.id)).body.status, "completed");
  assert.equal(loginsOf("ada"), 2, "the first run has logged in once more");
  const entries = await rows<{ action: string; actor: string; detail: string }>(
    `select action, actor_kind as actor, detail from audit_entry
     where action in ('credential.verify', 'credential.submit', 'credential.delete') order by occurred_at, id`,
  );
  assert.deepEqual(
    entries.map(({ action, actor }) => `${action} ${actor}`),
    [
      "credential.verify end_user",
      "credential.delete service",
      "credential.verify end_user",
      "credential.submit end_user",
    ],
  );
  assert.equal(JSON.parse(entries[1]?.detail ?? "").reason, "login_refused");
  assert.equal(JSON.parse(entries[3]?.detail ?? "").verify, "accepted");
});

test("what the target does not answer is stored as it is, and the page says so", async () => {
  const session = await open();
  const answer = await tryLogin(session.hosted_url, "broken", PASSWORD);
  assert.equal(answer.status, 200);
  assert.match(answer.text, /did not say in time whether the login is right/);
  assert.match(answer.text, /Your login is saved/);
  assert.equal((await hosted.read(session.id)).status, "completed");
});

test("a login that takes too long is stored; a refusal that comes later is a refusal of the stored credential", async () => {
  const session = await open();
  const page = await submitToTry(session.hosted_url, "slow", "not the password");
  await until("the target is asked", () => loginsOf("slow") === 1);
  // Nobody sees the candidate: not the API, not a trigger, not an operator's list.
  const candidate = await candidateOf(session);
  assert.ok(candidate);
  assert.equal((await hosted.read(session.id)).credential_id, null);
  const trigger = await hosted.acme.post(`/blueprints/${BLUEPRINT}/trigger`, { credential_id: candidate });
  assert.equal(trigger.status, 422);
  // Anyone who opens the link meanwhile waits for the same; a second submit stores nothing.
  assert.match((await send(session.hosted_url)).text, /Checking with/);
  const csrf = csrfOf(page.text);
  const second = await submit(session.hosted_url, { username: "ada", password: PASSWORD }, { csrf });
  assert.match(second.text, /Checking with/);
  assert.equal(await candidateOf(session), candidate);

  await age(session);
  assert.match((await look(session.hosted_url, page.text)).text, /did not say in time/);
  const done = await hosted.read(session.id);
  assert.equal(done.credential_id, candidate);
  target.release();
  const rejections = async (): Promise<number> =>
    (await rows<{ n: number }>("select login_rejections as n from credential where id = $1", candidate))[0]
      ?.n ?? 0;
  await until("the rejection is counted", async () => (await rejections()) === 1);
});

test("after three refused logins a session takes no further one for a while, and the target is not asked", async () => {
  const session = await open();
  let csrf = "";
  for (let tries = 1; tries < limits.loginTriesMin; tries++) {
    const refused = await tryLogin(session.hosted_url, "guess", `wrong ${tries}`);
    assert.equal(refused.status, 422);
    csrf = csrfOf(refused.text);
  }
  const last = await tryLogin(session.hosted_url, "guess", "wrong again");
  assert.equal(last.status, 429);
  assert.match(last.text, /Northwind has refused several logins/);
  assert.match(load(last.text)("main").text(), /You can try again in 60 minutes/);
  assert.equal((await send(session.hosted_url)).status, 429);
  const next = await submit(session.hosted_url, { username: "guess", password: PASSWORD }, { csrf });
  assert.equal(next.status, 429);
  assert.equal(loginsOf("guess"), limits.loginTriesMin);
  // After the cool-down one more is tried.
  await rows("update credential_session set login_closed_until = app_now() where id = $1", session.id);
  assert.equal((await tryLogin(session.hosted_url, "guess", PASSWORD)).status, 200);
});

const pageOf = async ({ hosted_url: url }: SessionBody): Promise<string> => (await send(url)).text;

test("a session that is over takes its candidate along, with a tombstone", async () => {
  const session = await open();
  const page = await submitToTry(session.hosted_url, "slow", PASSWORD);
  const candidate = await candidateOf(session);
  assert.ok(candidate);
  await rows("update credential_session set expires_at = app_now() where id = $1", session.id);
  // By a worker: the page that waits is not asked.
  await until("the candidate is erased", async () => (await hosted.credentialsOf(session.id)) === 0);
  assert.equal((await look(session.hosted_url, page.text)).status, 410);
  const tombstones = readFileSync(join(hosted.installation.dataFolder, "tombstones.ndjson"), "utf8");
  assert.ok(tombstones.includes(candidate));
});

test("a restore erases what was being tried, and the session is pending as before", async () => {
  const session = await open();
  await submitToTry(session.hosted_url, "slow", PASSWORD);
  const { database, dataFolder } = hosted.installation;
  const signing = openSigning(readSigningKey(readFileSync(join(dataFolder, "signing.key"), "utf8")));
  await reconcileRestore(database.db, signing, []);
  assert.equal(await hosted.credentialsOf(session.id), 0);
  assert.equal((await hosted.read(session.id)).status, "pending");
  assert.match(await pageOf(session), /Connect Northwind/);
});

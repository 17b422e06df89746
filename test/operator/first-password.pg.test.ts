// A password that was made for an operator: others have seen it, in a terminal or in the log of a container.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createFirstOperator } from "#actions/operators/create-first-operator.ts";
import { createOperator, resetPassword } from "#actions/operators/manage-operators.ts";
import { limits } from "#domain/limits.ts";
import { codeOf, openBrowser, type OperatorAnswer } from "./browser.ts";
import { openOperatorStage, type OperatorStage } from "./stage.ts";
import { signAgain } from "../sign-again.ts";

const OWN = "a sentence of my own";

let stage: OperatorStage;
let made = 0;
before(async () => {
  stage = await openOperatorStage();
});
after(async () => await stage?.[Symbol.asyncDispose]());

const context = () => ({ db: stage.db, signing: stage.signing, actor: { kind: "cli" } }) as const;
const create = async () =>
  await createOperator(context(), { email: `new-${made++}@example.com`, role: "viewer", accounts: null });
const reasonOf = ({ body }: OperatorAnswer): string => body.error.details[0]?.code;

test("it is changed before anything else can be done; then it is the operator's own", async () => {
  const { id, email, password } = await create();
  const browser = openBrowser(stage.service.url);
  const signedIn = await browser.signIn(email, password);
  assert.deepEqual([signedIn.status, signedIn.body.needs], [201, "password"]);
  const refused = await browser.send("GET", "/runs");
  assert.deepEqual([refused.status, reasonOf(refused)], [403, "password_change_required"]);

  const change = async (current: string, next: string): Promise<OperatorAnswer> =>
    await browser.send("POST", "/me/password", { current_password: current, new_password: next });
  const same = await change(password, password);
  assert.deepEqual([same.status, same.body.error.details[0].field], [422, "new_password"]);
  assert.equal((await browser.send("GET", "/runs")).status, 403);
  const changed = await change(password, OWN);
  assert.deepEqual([changed.status, changed.body.needs], [200, null]);
  browser.csrf = changed.body.csrf_token;
  assert.equal((await browser.send("GET", "/runs")).status, 200);
  assert.equal((await openBrowser(stage.service.url).signIn(email, password)).status, 401);

  await stage.moveClock("30 days");
  const later = await openBrowser(stage.service.url).signIn(email, OWN);
  assert.deepEqual([later.status, later.body.needs], [201, null]);
  const reset = await resetPassword(context(), id);
  const again = await openBrowser(stage.service.url).signIn(email, reset);
  assert.deepEqual([again.status, again.body.needs], [201, "password"]);
  await stage.moveClock("0");
});

test("it counts for seven days; who knows it is told what to do, and nobody else", async () => {
  const { email, password } = await create();
  await stage.moveClock("6 days 23 hours");
  assert.equal((await openBrowser(stage.service.url).signIn(email, password)).status, 201);
  await stage.moveClock("7 days 1 second");
  const expired = await openBrowser(stage.service.url).signIn(email, password);
  assert.deepEqual([expired.status, reasonOf(expired)], [401, "password_expired"]);
  assert.match(expired.body.error.message, /latchkey operators reset-password/);
  const wrong = await openBrowser(stage.service.url).signIn(email, "something else");
  assert.deepEqual([wrong.status, wrong.body.error.details], [401, undefined]);
  await stage.moveClock("0");
});

test("nor does it count beyond the limits of the sign-in, with a code that is right", async () => {
  const someone = await stage.signedIn();
  const { secret } = await someone.browser.enrol(someone.password);
  await stage.db.query(
    `update operator set first_password_until = app_now() - interval '1 second', totp_step = 0 where id = $1`,
    [someone.id],
  );
  await signAgain(stage.db, "operator");
  let status = 0;
  for (let tries = 0; status !== 429 && tries < limits.signInFree + 3; tries++)
    ({ status } = await openBrowser(stage.service.url).signIn(someone.email, "wrong"));
  assert.equal(status, 429);
  const signIn = async (): Promise<number> =>
    (await openBrowser(stage.service.url).signIn(someone.email, someone.password, codeOf(secret))).status;
  assert.equal(await signIn(), 429);
  await stage.db.query(`update operator set first_password_until = null where id = $1`, [someone.id]);
  await signAgain(stage.db, "operator");
  assert.equal(await signIn(), 201);
});

test("the first operator's is one of them", async () => {
  await stage.db.query("delete from operator_session");
  await stage.db.query("delete from operator_recovery_code");
  await stage.db.query("delete from operator");
  const first = await createFirstOperator(stage.db, stage.signing, "admin@localhost");
  const signedIn = await openBrowser(stage.service.url).signIn(first?.email ?? "", first?.password ?? "");
  assert.deepEqual([signedIn.status, signedIn.body.needs], [201, "password"]);
});

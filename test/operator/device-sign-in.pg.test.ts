// docs/operator-api.md#signing-in-a-command-line: RFC 8628 against our own sign-in: one code, one decision, one token, for some minutes.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { coversRole, OPERATOR_ROLES, type OperatorRole } from "#domain/operator.ts";
import { rewriteSigned } from "../sign-again.ts";
import { openBrowser, sendPlain, type Browser } from "./browser.ts";
import { openOperatorStage, type OperatorStage, type Someone } from "./stage.ts";

let stage: OperatorStage;
before(async () => {
  stage = await openOperatorStage();
});
after(async () => await stage?.[Symbol.asyncDispose]());

/** A command line, which has neither cookie nor origin. */
const send = async (path: string, body: object) =>
  await sendPlain(
    `${stage.service.url}/operator/v1${path}`,
    "POST",
    { "Content-Type": "application/json", "X-CSRF-Token": "none" },
    JSON.stringify(body),
  );

interface Begun {
  readonly device_code: string;
  readonly user_code: string;
  readonly verification_url_complete: string;
}

/** Each from an address of its own would need a proxy; the tests stay below the limit of one. */
async function begin(name = "ana@laptop"): Promise<Begun> {
  const { status, body, text } = await send("/session/device", { name });
  assert.equal(status, 201, text);
  return body;
}

const poll = async ({ device_code }: Begun) => await send("/session/device/token", { device_code });

async function signedIn(
  role: OperatorRole,
): Promise<{ readonly someone: Someone; readonly browser: Browser }> {
  const someone = await stage.operator(role);
  await stage.giveSecondFactor(someone);
  return { someone, browser: await stage.holding(someone) };
}

const approve = async (browser: Browser, { user_code }: Begun, role: string, lifetime = 3_600) =>
  await browser.send("POST", `/device-sign-ins/${user_code}/approve`, { role, lifetime_seconds: lifetime });

const statusOf = async (token: string): Promise<number> =>
  (await stage.withToken(token, "GET", "/runs")).status;

test("an operator approves a code, and the command line gets one token, once, that acts for them", async () => {
  const { someone, browser } = await signedIn("operator");
  const begun = await begin();
  assert.match(begun.user_code, /^[2-9A-HJ-NP-Z]{4}-[2-9A-HJ-NP-Z]{4}$/);
  assert.equal(
    begun.verification_url_complete,
    `${stage.service.url}/dashboard/device?code=${begun.user_code}`,
  );
  assert.deepEqual((await poll(begun)).body, { status: "pending", grant: null });
  // As people type it.
  const typed = begun.user_code.replace("-", " ").toLowerCase();
  const { body: shown } = await browser.send("GET", `/device-sign-ins/${encodeURIComponent(typed)}`);
  assert.deepEqual([shown.name, shown.user_code], ["ana@laptop", begun.user_code]);
  assert.deepEqual(shown.roles, ["operator", "reviewer", "viewer"]);

  const approved = await approve(browser, begun, "operator");
  assert.equal(approved.status, 200, approved.text);
  const { body } = await poll(begun);
  const { token, ...grant } = body.grant;
  assert.match(token, /^lko_[0-9A-Za-z]{38}$/);
  assert.deepEqual([body.status, grant.operator, grant.role], ["approved", someone.email, "operator"]);
  assert.deepEqual([grant.token_id, grant.is_limited], [approved.body.token_id, false]);
  assert.equal(await statusOf(token), 200);
  assert.equal((await poll(begun)).status, 404, "a decision is handed out once");
  assert.equal((await approve(browser, begun, "operator")).status, 404, "a code is decided once");
  assert.equal((await stage.db.query("select 1 from operator_device_sign_in")).length, 0);

  const entries = await stage.db.query(
    `select actor_kind as kind, actor_id as id, detail::jsonb->>'acts_for' as "for" from audit_entry where subject_id = $1`,
    [grant.token_id],
  );
  assert.deepEqual(entries, [{ kind: "operator", id: someone.id, for: someone.id }]);
});

test("neither token, device code nor its plain hash is in the database", async () => {
  const { browser } = await signedIn("viewer");
  const begun = await begin();
  await approve(browser, begun, "viewer");
  const stored = JSON.stringify([
    await stage.db.query("select *, encode(device_hash, 'escape') from operator_device_sign_in"),
    await stage.db.query("select *, encode(token_hash, 'escape') from operator_token"),
  ]);
  const { token } = (await poll(begun)).body.grant;
  assert.equal(stored.includes(begun.device_code.slice(4, 20)), false);
  assert.equal(stored.includes(token.slice(4, 20)), false);
});

test("a refused code gives no token, and its command line is told once", async () => {
  const { browser } = await signedIn("viewer");
  const begun = await begin();
  assert.equal((await browser.send("POST", `/device-sign-ins/${begun.user_code}/deny`)).status, 204);
  assert.equal((await approve(browser, begun, "viewer")).status, 404);
  assert.deepEqual((await poll(begun)).body, { status: "denied", grant: null });
  assert.equal((await poll(begun)).status, 404);
});

test("a code expires, approved or not", async () => {
  const { browser } = await signedIn("viewer");
  const [waiting, approved] = [await begin(), await begin()];
  await approve(browser, approved, "viewer");
  await stage.moveClock("11 minutes");
  assert.deepEqual([(await poll(waiting)).status, (await poll(approved)).status], [404, 404]);
  await stage.moveClock("0 minutes");
});

function count(answers: readonly { readonly status: number }[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

test("of many approvals at once one counts, and of many polls one gets the token", async () => {
  const { browser, someone } = await signedIn("admin");
  const begun = await begin();
  const approvals = await Promise.all(
    Array.from({ length: 4 }, async () => await approve(browser, begun, "viewer")),
  );
  assert.deepEqual(count(approvals), { 200: 1, 404: 3 });
  const made = await stage.db.query("select 1 from operator_token where acts_for = $1", [someone.id]);
  assert.equal(made.length, 1, "the others made no token");
  const polls = await Promise.all(Array.from({ length: 4 }, async () => await poll(begun)));
  assert.deepEqual(count(polls), { 200: 1, 404: 3 });
});

test("nobody gives a role that their own does not cover, nor a longer life than thirty days", async () => {
  const begun = await begin();
  for (const [own, wanted] of [
    ["operator", "admin"],
    ["reviewer", "viewer"],
    ["viewer", "reviewer"],
  ] as const) {
    const { browser } = await signedIn(own);
    const refused = await approve(browser, begun, wanted);
    assert.deepEqual([refused.status, refused.body.error.type], [409, "conflict"], `${own} ${wanted}`);
  }
  const { browser } = await signedIn("admin");
  assert.equal((await approve(browser, begun, "viewer", 31 * 86_400)).status, 422);
  assert.equal((await approve(browser, begun, "viewer", 30 * 86_400)).status, 200);
});

test("a role covers itself, and an admin's and an operator's cover those below", () => {
  const covered = (role: OperatorRole) => OPERATOR_ROLES.filter((other) => coversRole(role, other));
  assert.deepEqual(covered("admin"), ["admin", "operator", "reviewer", "viewer"]);
  assert.deepEqual(covered("operator"), ["operator", "reviewer", "viewer"]);
  assert.deepEqual(covered("reviewer"), ["reviewer"]);
  assert.deepEqual(covered("viewer"), ["viewer"]);
});

test("the token ends with the operator's rights, and comes back with them", async () => {
  const { someone, browser } = await signedIn("operator");
  const begun = await begin();
  await approve(browser, begun, "operator");
  const { token } = (await poll(begun)).body.grant;
  const set = async (assignment: string) =>
    await rewriteSigned(stage.db, "operator", `${assignment} where id = $1`, [someone.id]);
  const statuses: number[] = [];
  for (const assignment of [
    "role = 'viewer'",
    "role = 'admin'",
    "disabled_at = app_now()",
    "disabled_at = null",
  ]) {
    await set(assignment);
    statuses.push(await statusOf(token));
  }
  assert.deepEqual(statuses, [401, 200, 401, 200]);
});

test("it ends itself, and no session can be ended that way", async () => {
  const { browser } = await signedIn("viewer");
  const begun = await begin();
  await approve(browser, begun, "viewer");
  const { token, token_id: id } = (await poll(begun)).body.grant;
  assert.equal((await browser.send("DELETE", "/tokens/own")).status, 409);
  assert.equal((await stage.withToken(token, "DELETE", "/tokens/own")).status, 204);
  assert.equal(await statusOf(token), 401);
  const entries = await stage.db.query(
    "select action, actor_kind as kind, actor_id as by from audit_entry where subject_id = $1 and action = 'operator_token.revoke'",
    [id],
  );
  assert.deepEqual(entries, [{ action: "operator_token.revoke", kind: "operator_token", by: id }]);
});

test("a device put behind another one's code, or into an approved row, gets nothing", async () => {
  const { browser } = await signedIn("viewer");
  const [theirs, ours] = [await begin("somebody else"), await begin()];
  const code = ours.user_code.replace("-", "");
  const swap = async (): Promise<void> => {
    const hash = stage.signing.operators.deviceHash(theirs.device_code);
    await stage.db.query("delete from operator_device_sign_in where device_hash = $1", [hash]);
    await stage.db.query("update operator_device_sign_in set device_hash = $1 where user_code = $2", [
      hash,
      code,
    ]);
  };
  const back = async (): Promise<void> => {
    const hash = stage.signing.operators.deviceHash(ours.device_code);
    await stage.db.query("update operator_device_sign_in set device_hash = $1 where user_code = $2", [
      hash,
      code,
    ]);
  };
  await swap();
  assert.equal((await approve(browser, ours, "viewer")).status, 404);
  await back();
  assert.equal((await approve(browser, ours, "viewer")).status, 200);
  await swap();
  assert.equal((await poll(theirs)).status, 404);
});

test("a token whose operator was changed by SQL is none", async () => {
  const { browser } = await signedIn("viewer");
  const begun = await begin();
  await approve(browser, begun, "viewer");
  const { token, token_id: id } = (await poll(begun)).body.grant;
  await stage.db.query("update operator_token set acts_for = null where id = $1", [id]);
  assert.equal(await statusOf(token), 401);
});

test("codes that are tried out, polls that are too many, and command lines that ask too often are slowed down", async () => {
  const { browser } = await signedIn("viewer");
  const until429 = async (ask: () => Promise<{ readonly status: number }>, most: number): Promise<number> => {
    for (let at = 0; at < most; at++) if ((await ask()).status === 429) return at;
    return assert.fail("never slowed down");
  };
  const begun = await begin();
  assert.ok((await until429(async () => await poll(begun), 20)) >= 5);
  await until429(async () => await browser.send("GET", "/device-sign-ins/AAAA-AAAA"), 60);
  await until429(async () => await send("/session/device", { name: "x" }), 40);
});

test("a page of another site can't begin a sign-in", async () => {
  const foreign = openBrowser(stage.service.url);
  const { status } = await foreign.send(
    "POST",
    "/session/device",
    { name: "x" },
    { Origin: "https://elsewhere.example" },
  );
  assert.equal(status, 403);
});

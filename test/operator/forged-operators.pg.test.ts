// SECURITY.md: somebody who writes to the database is no operator, and no operator more than they are.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { changeRole } from "#actions/operators/manage-operators.ts";
import { must } from "#lib/assert.ts";
import { argon2Hash } from "../lib/argon2-hash.ts";
import { openBrowser } from "./browser.ts";
import { openOperatorStage, type OperatorStage, type Someone } from "./stage.ts";

let stage: OperatorStage;
before(async () => {
  stage = await openOperatorStage();
});
after(async () => await stage?.[Symbol.asyncDispose]());

const ownHash = (password: string): string => argon2Hash(password, { memory: 19_456, passes: 2 });

const signIn = async (email: string, password: string): Promise<number> =>
  (await openBrowser(stage.service.url).signIn(email, password)).status;

/** The fault of the alarm about an operator's row. */
async function alarmOf(id: string): Promise<string | undefined> {
  const rows = await stage.db.query<{ fault: string }>(
    `select fault from row_alarm where kind = 'operator' and id = $1`,
    [id],
  );
  const entries = await stage.db.query(
    `select 1 from audit_entry where action = 'row.refuse' and subject_id = $1`,
    [id],
  );
  assert.equal(entries.length, rows.length);
  return rows[0]?.fault;
}

const change = async ({ id }: Someone, assignment: string): Promise<void> =>
  void (await stage.db.query(`update operator set ${assignment} where id = $1`, [id]));

test("an operator who was put into the database signs in nowhere, and raises an alarm", async () => {
  await stage.db.query(
    "insert into operator (id, email, password_hash, role) values ('op_forged', 'forged@example.com', $1, 'admin')",
    [ownHash("a password of their own")],
  );
  assert.equal(await signIn("forged@example.com", "a password of their own"), 401);
  assert.equal(await alarmOf("op_forged"), "unsigned");
  // With the signature of somebody else's row, too.
  const { id } = await stage.operator("admin");
  await stage.db.query(
    `update operator set row_serial = other.row_serial, row_mac = other.row_mac
     from operator other where operator.id = 'op_forged' and other.id = $1`,
    [id],
  );
  assert.equal(await signIn("forged@example.com", "a password of their own"), 401);
});

const FORGED: Readonly<Record<string, string>> = {
  "a role": "role = 'admin'",
  "a password": `password_hash = '${ownHash("another password")}'`,
  "an address": "email = 'somebody-else@example.com'",
  "a second factor that is not theirs":
    "totp_nonce = decode(repeat('00', 16), 'hex'), totp_confirmed_at = app_now()",
  "how long a first password counts": "first_password_until = app_now() + interval '1 year'",
  "who they are at the provider": "oidc_issuer = 'https://x', oidc_subject = 'y', oidc_linked_at = app_now()",
};

for (const [what, assignment] of Object.entries(FORGED)) {
  test(`${what}, changed by SQL, ends the session and the sign-in, and is no one's`, async () => {
    const someone = await stage.signedIn("viewer");
    assert.equal((await someone.browser.send("GET", "/me")).status, 200);
    await change(someone, assignment);
    assert.equal((await someone.browser.send("GET", "/me")).status, 401);
    assert.equal(await signIn(someone.email, someone.password), 401);
    assert.equal(await signIn(someone.email, "another password"), 401);
    assert.equal(await signIn("somebody-else@example.com", someone.password), 401);
    assert.equal(await alarmOf(someone.id), "forged");
  });
}

test("a session that is made another operator's, and one in which a second factor is said to count, are none", async () => {
  const admin = await stage.operator("admin");
  const moves: readonly string[] = [
    `operator_id = '${admin.id}'`,
    "stepped_up_at = app_now()",
    "expires_at = app_now() + interval '1 year'",
  ];
  for (const move of moves) {
    const { id, browser } = await stage.signedIn("viewer");
    assert.equal((await browser.send("GET", "/me")).status, 200);
    await stage.db.query(`update operator_session set ${move} where operator_id = $1`, [id]);
    assert.equal((await browser.send("GET", "/me")).status, 401, move);
  }
});

test("somebody who was disabled and is enabled by SQL stays out", async () => {
  const someone = await stage.operator();
  await stage.installation.command("operators", "disable", someone.email);
  await change(someone, "disabled_at = null");
  assert.equal(await signIn(someone.email, someone.password), 401);
});

test("an operator's row that is put back, with the signature that it had, gives no role back", async () => {
  const someone = await stage.operator("admin");
  const [before] = await stage.db.query<{ serial: number; mac: Buffer }>(
    "select row_serial as serial, row_mac as mac from operator where id = $1",
    [someone.id],
  );
  const context = { db: stage.db, signing: stage.signing, actor: { kind: "cli" } } as const;
  await changeRole(context, someone.id, "viewer");
  assert.equal(await signIn(someone.email, someone.password), 201);
  const { serial, mac } = must(before, "the row");
  await stage.db.query("update operator set role = 'admin', row_serial = $2, row_mac = $3 where id = $1", [
    someone.id,
    serial,
    mac,
  ]);
  assert.equal(await signIn(someone.email, someone.password), 401);
  assert.equal(await alarmOf(someone.id), "outdated");
});

test("an admin can't change a forged row into one of the installation's, and is told which row it is", async () => {
  const someone = await stage.operator();
  await change(someone, "role = 'admin'");
  const context = { db: stage.db, signing: stage.signing, actor: { kind: "cli" } } as const;
  await assert.rejects(changeRole(context, someone.id, "viewer"), {
    message: new RegExp(`The row operator ${someone.id} of the database was changed.*Nothing was changed`),
  });
});

test("admins that somebody else has made do not count: the last one of ours stays", async () => {
  const admins = await stage.db.query<{ id: string }>("select id from operator where role = 'admin'");
  const context = { db: stage.db, signing: stage.signing, actor: { kind: "cli" } } as const;
  const refusals: string[] = [];
  // One after the other: at once they would lock each other's rows.
  for (const { id } of admins)
    await changeRole(context, id, "viewer").catch((error: Error) => refusals.push(error.message));
  assert.ok(
    refusals.some((message) => /is the only admin/.test(message)),
    refusals.join("; "),
  );
});

test("a new hash can't be tried without the signing key: it names the key, and the same password by itself gives another", async () => {
  const { id } = await stage.operator();
  const [row] = await stage.db.query<{ hash: string }>(
    "select password_hash as hash from operator where id = $1",
    [id],
  );
  assert.match(row?.hash ?? "", /^\$argon2id\$v=19\$m=19456,t=2,p=1,keyid=/);
});

test("the System page and `latchkey doctor` name the rows, and `doctor` forgets those that are in order again", async () => {
  const { browser } = await stage.signedIn("viewer");
  const { body } = await browser.send("GET", "/system");
  const shown = body.refused_rows.filter(({ id }: any) => id === "op_forged");
  assert.deepEqual(
    shown.map(({ kind, fault }: any) => [kind, fault]),
    [["operator", "forged"]],
  );
  const doctor = await stage.installation.command("doctor");
  assert.match(
    doctor.stdout,
    /wrong The row operator op_forged of the database was changed.* It was not used\./,
  );
  await stage.db.query("delete from operator where id = 'op_forged'");
  await stage.installation.command("doctor");
  assert.equal(await alarmOf2("op_forged"), false);
});

const alarmOf2 = async (id: string): Promise<boolean> =>
  (await stage.db.query("select 1 from row_alarm where id = $1", [id])).length > 0;

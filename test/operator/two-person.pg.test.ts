// Issue: where an account says `two_person: true`, widening hosts, changing a login and rebinding need a second admin.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { changeRole, disableOperator, enableOperator } from "#actions/operators/manage-operators.ts";
import { planRebinding, rebindCredential } from "#actions/credentials/rebind-credentials.ts";
import { checkSignedRows } from "#db/signing/check-signed-rows.ts";
import { forgetFloors, settleRows } from "#db/signing/signed-rows.ts";
import type { OperatorAnswer } from "./browser.ts";
import {
  AWAY,
  blueprint,
  CHANGES,
  HOME,
  noteExpiredBeside,
  ON,
  openTwoPersonStage,
  strategy,
  typed,
  type TwoPersonStage,
} from "./two-person-stage.ts";
import { expectHeldJson } from "../cli/held-surface.ts";

let two: TwoPersonStage;

before(async () => void (two = await openTwoPersonStage()));
after(async () => await two?.stage[Symbol.asyncDispose]());

const refusalOf = ({ status, body }: OperatorAnswer): readonly [number, string] => [
  status,
  body?.error?.message ?? "",
];

test("export and plan keep `two_person`, and the account says so", async () => {
  assert.match(await two.inForce(), /two_person: true/);
  assert.equal((await two.ask(two.anna, "readAccount", { account: "acme" })).body.two_person, true);
  const plan = await two.ask(two.anna, "planConfig", {}, typed(ON));
  assert.deepEqual([plan.body.changes[0].change, plan.body.needs], ["unchanged", []]);
});

for (const [what, documentOf, reason] of CHANGES) {
  test(`${what}: proposed by an admin and from the command line, and nothing is applied`, async () => {
    const was = await two.inForce();
    const plan = await two.ask(two.ben, "planConfig", {}, typed(documentOf()));
    assert.match(plan.body.needs.join(), reason, plan.text);
    const { id, reasons } = await two.propose(two.anna, documentOf());
    assert.match(reasons.join(), reason);
    assert.equal(await two.inForce(), was);
    const [shown] = [await two.read(id)];
    assert.deepEqual(
      [shown.status, shown.proposed_by, shown.confirmed_by, shown.confirmations_wanted],
      ["open", two.anna.email, [two.anna.email], 1],
    );
    assert.ok(shown.documents[0].differences.length > 0);
    await two.discard(id);

    const pushed = await two.applyByCommand(documentOf());
    assert.equal(pushed.code, 4, pushed.stderr);
    assert.match(pushed.stderr, reason);
    assert.match(pushed.stderr, /Two different admins must still confirm prop_\w+ in the dashboard/);
    assert.equal(await two.inForce(), was);
    const { stdout } = await two.latchkey("proposals", "discard", pushed.id, "--json");
    expectHeldJson("proposals discard", JSON.parse(stdout));
    assert.equal((await two.confirm(two.ben, pushed.id)).status, 409);
    assert.equal(await two.inForce(), was);
  });
}

test("what decides nothing about where a credential goes is applied at once", async () => {
  for (const text of [
    strategy([HOME], undefined, "name: Portal"),
    'strategy: strat_new\naccount: acme\nhosts: ["https://new.example"]\nfields: [{ key: t, type: password }]\nlogin: { type: none }',
    blueprint(`"${HOME}"`, "same").replace(/hosts: .*\n/, ""),
    `${ON}\nname: Acme`,
    "account: globex",
  ]) {
    const { body, text: said } = await two.ask(two.anna, "applyConfig", {}, typed(text));
    assert.equal(body.proposal, null, said);
    assert.equal(body.changes.length, 1);
  }
  await two.stage.installation.apply(ON, strategy([HOME]));
});

test("one change of a push that needs two keeps back the whole push", async () => {
  const was = await two.inForce();
  const { id } = await two.propose(
    two.anna,
    strategy([HOME, AWAY]),
    "account: initech",
    blueprint("", "harmless"),
  );
  assert.equal(await two.inForce(), was);
  // Two last confirmations at once: one of them applies it.
  const answers = await Promise.all([two.ben, two.carl].map(async (admin) => await two.confirm(admin, id)));
  const [done, late] = answers.toSorted((a, b) => a.status - b.status);
  assert.deepEqual([done?.body.status, done?.body.changes.length, late?.status], ["applied", 3, 409]);
  const now = await two.inForce();
  for (const each of [AWAY, "initech", "harmless"]) assert.ok(now.includes(each), each);
  assert.deepEqual(await two.stage.actions(id), ["proposal.create", "proposal.confirm", "proposal.apply"]);
  const [entry] = await two.stage.db.query<{ actor: string; detail: string }>(
    `select actor_id as actor, detail from audit_entry where action = 'config.apply' and detail like '%' || $1 || '%' limit 1`,
    [id],
  );
  assert.ok([two.ben.id, two.carl.id].includes(entry?.actor ?? ""));
  await two.stage.installation.apply(strategy([HOME]));
});

test("one's own proposal is confirmed by somebody else; the same admin counts once; others may not", async () => {
  const mine = (await two.propose(two.anna, strategy([HOME, AWAY]))).id;
  assert.deepEqual(refusalOf(await two.confirm(two.anna, mine)), [
    409,
    "You proposed this yourself. Another admin must confirm it.",
  ]);
  for (const role of ["operator", "reviewer", "viewer"] as const) {
    const somebody = await two.stage.operator(role);
    await two.stage.giveSecondFactor(somebody);
    assert.equal((await two.confirm(somebody, mine)).status, 403);
  }
  const late = await two.stage.holding(two.ben, false);
  const wanted = await two.ask(late, "confirmProposal", { proposalId: mine });
  assert.equal(wanted.body.error.details[0].code, "step_up_required");
  assert.equal((await two.ask(two.ben, "discardProposal", { proposalId: mine })).status, 204);

  const { id } = await two.applyByCommand(strategy([HOME, AWAY]));
  const first = await two.confirm(two.anna, id);
  assert.deepEqual([first.body.status, first.body.confirmations_wanted, first.body.changes], ["open", 1, []]);
  assert.equal((await two.confirm(two.anna, id)).status, 409);
  assert.doesNotMatch(await two.inForce(), /away\.example/);
  assert.equal((await two.agreed(id, two.ben)).body.status, "applied");
  assert.match(await two.inForce(), /away\.example/);
  assert.equal((await two.confirm(two.carl, id)).status, 409);
  await two.stage.installation.apply(strategy([HOME]));
});

test("an operator who proposes does not count as an admin, and discards their own alone", async () => {
  const operator = await two.stage.operator("operator");
  const other = await two.stage.operator("operator");
  for (const each of [operator, other]) await two.stage.giveSecondFactor(each);
  const { id } = await two.propose(operator, strategy([HOME, AWAY]));
  assert.equal((await two.read(id)).confirmations_wanted, 2);
  await two.agreed(id, two.anna);
  assert.doesNotMatch(await two.inForce(), /away\.example/);
  assert.equal((await two.ask(other, "discardProposal", { proposalId: id })).status, 403);
  assert.equal((await two.ask(operator, "discardProposal", { proposalId: id })).status, 204);
});

test("the same push again is the same proposal", async () => {
  const { id } = await two.propose(two.anna, strategy([HOME, AWAY]));
  assert.equal((await two.propose(two.ben, strategy([HOME, AWAY]))).id, id);
  assert.equal((await two.applyByCommand(strategy([HOME, AWAY]))).id, id);
  const listed = JSON.parse((await two.latchkey("proposals", "list", "--json")).stdout);
  assert.deepEqual(
    listed.items.map((each: { id: string }) => each.id),
    [id],
  );
  const overview = await (await two.stage.holding(two.anna)).send("GET", "/overview");
  assert.equal(overview.body.needs_people.proposals, 1);
  assert.match((await two.latchkey("proposals", "show", id)).stdout, /\+ hosts\[?1?.*away\.example/);
  await two.discard(id);
  assert.match((await two.latchkey("proposals", "list")).stdout, /No change awaits/);
  assert.equal((await two.latchkey("proposals", "discard", id)).code, 1);
  assert.equal((await two.latchkey("proposals", "show", "prop_nothing")).code, 1);
});

test("an earlier version that names more is proposed, too", async () => {
  await two.change(blueprint(`"${HOME}", "${AWAY}"`));
  await two.stage.installation.apply(blueprint(`"${HOME}"`));
  const name = { account: "acme", blueprintKey: "asks" };
  const wide = String((await two.ask(two.anna, "readBlueprint", name)).body.version - 1);
  const { body } = await two.ask(two.anna, "publishBlueprintVersion", { ...name, version: wide });
  const published = await two.latchkey("blueprints", "publish", "acme", "asks", wide);
  assert.equal(published.code, 4, published.stderr);
  assert.ok(published.stderr.includes(body.proposal.id));
  await two.discard(body.proposal.id);
});

test("what was changed meanwhile is named, and ends the proposal", async () => {
  const { id } = await two.propose(two.anna, strategy([HOME, AWAY]), "account: initech\nname: New name");
  await two.stage.installation.apply(strategy([HOME], undefined, "name: Renamed"));
  const answer = await two.confirm(two.ben, id);
  assert.equal(answer.status, 409, answer.text);
  assert.match(answer.body.error.message, /strategy acme\/strat_portal has changed since it was proposed/);
  assert.equal((await two.read(id)).status, "stale");
  assert.doesNotMatch(await two.inForce(), /away\.example|New name/);
  assert.deepEqual(await two.stage.actions(id), ["proposal.create", "proposal.confirm", "proposal.stale"]);
  await two.stage.installation.apply(strategy([HOME]));
});

test("a confirmation of somebody who is no admin any more does not count", async () => {
  const context = { db: two.stage.db, signing: two.stage.signing, actor: { kind: "cli" } } as const;
  const [demoted, removed] = [await two.newAdmin(), await two.newAdmin()];
  const { id } = await two.applyByCommand(strategy([HOME, AWAY]));
  await two.agreed(id, demoted);
  await changeRole(context, demoted.id, "operator");
  assert.equal((await two.agreed(id, removed)).body.confirmations_wanted, 1);
  await disableOperator(context, removed.id);
  assert.equal((await two.agreed(id, two.ben)).body.confirmations_wanted, 1);
  assert.doesNotMatch(await two.inForce(), /away\.example/);
  // Of who has proposed it, as well.
  const proposer = await two.newAdmin();
  const own = (await two.propose(proposer, strategy([HOME, `${AWAY}:8443`]))).id;
  await changeRole(context, proposer.id, "viewer");
  assert.equal((await two.agreed(own, two.ben)).body.confirmations_wanted, 1);
  for (const each of [id, own]) await two.discard(each);
});

test("after seven days nothing can be confirmed, and that is on record", async () => {
  const { id } = await two.propose(two.anna, strategy([HOME, AWAY]));
  await two.stage.moveClock("7 days");
  assert.deepEqual(refusalOf(await two.confirm(two.ben, id)), [
    409,
    "The proposal has expired. Propose the change again. Nothing was changed.",
  ]);
  assert.deepEqual(await noteExpiredBeside(two, id), ["proposal.create"], "the first one is at it still");
  await two.stage.moveClock("0 days");
  assert.equal((await two.read(id)).status, "expired");
  assert.deepEqual(await two.stage.actions(id), ["proposal.create", "proposal.expire"]);
});

/** What a database writer makes of a proposal; nobody's confirmation applies it, and the alarm names the row. */
async function refusedRow(id: string, fault: string): Promise<void> {
  forgetFloors(two.stage.db);
  const answer = await two.confirm(two.ben, id);
  assert.equal(answer.status, 409, answer.text);
  assert.doesNotMatch(await two.inForce(), /away\.example/);
  await checkSignedRows(two.stage.db, { versions: false });
  await settleRows(two.stage.db);
  const alarms = await two.stage.db.query("select kind, fault from row_alarm where id = $1", [id]);
  assert.deepEqual(alarms, [{ kind: "proposal", fault }]);
}

test("a proposal that a database writer has made, changed or put back is worth nothing", async () => {
  const forged = (await two.applyByCommand(strategy([HOME, "https://harmless.example"]))).id;
  // Another confirmation, other documents, another life.
  for (const assignment of [
    "confirmed_by = array[$2]",
    "content = replace(content, 'harmless', 'away'), confirmed_by = array[$2::text]",
    "expires_at = expires_at + interval '1 day', content = replace(content, $2, $2)",
  ]) {
    const [kept] = await two.stage.db.query<{ row: string }>(
      "select to_jsonb(proposal)::text as row from proposal where id = $1",
      [forged],
    );
    await two.stage.db.query(`update proposal set ${assignment} where id = $1`, [forged, two.carl.id]);
    await refusedRow(forged, "forged");
    await two.stage.db.query("delete from proposal where id = $1", [forged]);
    await two.stage.db.query(
      "insert into proposal select * from jsonb_populate_record(null::proposal, $1::jsonb)",
      [kept?.row],
    );
  }
  await checkSignedRows(two.stage.db, { versions: false });
  assert.equal((await two.read(forged)).status, "open");

  // A row of one's own.
  const made = forged.replace(/.{6}$/, "AAAAAA");
  await two.stage.db.query(
    `insert into proposal (id, account_id, kind, content, status, confirmed_by, expires_at)
     select $2, account_id, kind, replace(content, 'harmless', 'away'), 'open', array[$3], expires_at from proposal where id = $1`,
    [forged, made, two.carl.id],
  );
  await refusedRow(made, "unsigned");
  await two.stage.db.query("delete from proposal where id = $1", [made]);

  // What was discarded, put back as it was.
  const { id } = await two.propose(two.anna, strategy([HOME, AWAY]));
  const [row] = await two.stage.db.query<{ row: string }>(
    "select to_jsonb(proposal)::text as row from proposal where id = $1",
    [id],
  );
  await two.discard(id);
  await two.stage.db.query("delete from proposal where id = $1", [id]);
  await two.stage.db.query(
    "insert into proposal select * from jsonb_populate_record(null::proposal, $1::jsonb)",
    [row?.row],
  );
  await refusedRow(id, "outdated");
  await two.stage.db.query("delete from proposal where id = any ($1)", [[id, forged]]);
  await checkSignedRows(two.stage.db, { versions: false });
});

test("the account's rule holds when its row was changed or deleted", async () => {
  const [rule] = await two.stage.db.query<{ accountId: string; serial: number; mac: Buffer }>(
    `select account_id as "accountId", row_serial as serial, row_mac as mac from two_person_rule`,
  );
  for (const [sql, fault] of [
    ["update two_person_rule set is_on = false", "forged"],
    ["delete from two_person_rule", "deleted"],
  ] as const) {
    await two.stage.db.query(sql);
    forgetFloors(two.stage.db);
    const { id } = await two.propose(two.anna, strategy([HOME, AWAY]));
    await settleRows(two.stage.db);
    await two.discard(id);
    await checkSignedRows(two.stage.db, { versions: false });
    assert.deepEqual(await two.stage.db.query("select fault from row_alarm where kind = 'two_person_rule'"), [
      { fault },
    ]);
    // To apply the account's document puts it in order.
    await two.stage.installation.apply(`${ON}\nname: Acme`);
    const again = await checkSignedRows(two.stage.db, { versions: false });
    assert.deepEqual(again.refused, []);
  }
  // The document that is stored decides nothing.
  await two.stage.db.query(`update account set document = '{"account":"acme"}' where id = $1`, [
    rule?.accountId,
  ]);
  await two.discard((await two.propose(two.anna, "account: acme")).id);
  await two.discard((await two.propose(two.anna, strategy([HOME, AWAY]))).id);
  await two.stage.installation.apply(ON);
});

test("a strategy in force that somebody else has written does not make the next version a first one", async () => {
  await two.stage.db.query("update strategy set current_version = 1 where id = 'strat_portal'");
  forgetFloors(two.stage.db);
  const { id, reasons } = await two.propose(two.anna, strategy([AWAY]));
  assert.match(reasons.join(), /does not verify/);
  await two.discard(id);
  await two.change(strategy([HOME]));
  await checkSignedRows(two.stage.db, { versions: false });
});

test("credentials are bound anew when two admins have agreed to exactly that, once, within a day", async () => {
  await two.change(strategy([HOME, AWAY]));
  const rebind = async () => await two.latchkey("credentials", "rebind", two.credential, "--yes");
  // The action itself does nothing that was not agreed to, also not what was agreed to before the strategy changed.
  const services = { db: two.stage.db, vault: two.vault, signing: two.stage.signing };
  const [plan] = await planRebinding(services, { id: two.credential });
  assert.ok(plan && !("broken" in plan));
  for (const agreed of [
    { rebinding: plan, proposalId: null },
    { rebinding: { ...plan, after: [HOME, "https://third.example"] }, proposalId: "prop_x" },
  ])
    await assert.rejects(rebindCredential(services, two.credential, agreed), /two admins must confirm them/);
  const asked = await rebind();
  assert.equal(asked.code, 4, asked.stderr);
  const id = /prop_\w+/.exec(asked.stderr)?.[0] ?? assert.fail(asked.stderr);
  const shown = await two.read(id);
  assert.deepEqual(shown.rebindings, [
    { credential: two.credential, strategy: "strat_portal", before: [HOME], after: [HOME, AWAY] },
  ]);
  assert.deepEqual([shown.origins, shown.credentials], [[AWAY], 1]);
  assert.equal((await two.agreed(id, two.anna)).body.status, "open");
  assert.equal((await rebind()).code, 4);
  assert.equal((await two.agreed(id, two.ben)).body.status, "confirmed");

  // Not to anything else.
  await two.change(strategy([HOME, AWAY, "https://third.example"]));
  const other = await rebind();
  assert.equal(other.code, 4, other.stderr);
  await two.latchkey("proposals", "discard", /prop_\w+/.exec(other.stderr)?.[0] ?? "");
  await two.stage.installation.apply(strategy([HOME, AWAY]));
  // Not a day later.
  await two.stage.moveClock("24 hours");
  const late = await rebind();
  assert.equal(late.code, 4, late.stderr);
  await two.latchkey("proposals", "discard", /prop_\w+/.exec(late.stderr)?.[0] ?? "");
  await two.stage.moveClock("0 hours");

  const done = await rebind();
  assert.equal(done.code, 0, done.stderr);
  assert.equal((await two.read(id)).status, "applied");
  assert.deepEqual(await two.stage.actions(two.credential), ["credential.submit", "credential.rebind"]);
  // Once: what it was before is not put back by the same confirmation.
  await two.stage.installation.apply(strategy([HOME]));
  assert.equal((await rebind()).code, 4);
  await two.latchkey("proposals", "discard", (await lastProposal()) ?? "");
});

const lastProposal = async (): Promise<string | undefined> =>
  (
    await two.stage.db.query<{ id: string }>(
      "select id from proposal order by created_at desc, id desc limit 1",
    )
  )[0]?.id;

test("doctor names an account whose admins are too few", async () => {
  const isNamed = async (): Promise<boolean> =>
    /account acme requires two admins/.test((await two.latchkey("doctor")).stdout);
  assert.equal(await isNamed(), false);
  await two.stage.db.transaction(async (tx) => {
    const context = { db: tx, signing: two.stage.signing, actor: { kind: "cli" } } as const;
    const admins = await tx.query<{ id: string }>(
      "select id from operator where role = 'admin' and disabled_at is null and id <> $1",
      [two.anna.id],
    );
    for (const { id } of admins) await disableOperator(context, id);
  });
  assert.equal(await isNamed(), true);
});

test("turning it off needs two admins, and then none is asked", async () => {
  for (const each of [two.ben, two.carl])
    await two.stage.db.transaction(async (tx) => {
      await enableOperator({ db: tx, signing: two.stage.signing, actor: { kind: "cli" } }, each.id);
    });
  await two.change("account: acme");
  assert.doesNotMatch(await two.inForce(), /two_person/);
  const { body } = await two.ask(two.anna, "applyConfig", {}, typed(strategy([HOME, AWAY])));
  assert.equal(body.proposal, null);
});

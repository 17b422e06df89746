// docs/decisions/0023: what operators do. Every route that changes something is in the table: no entry, no effect; one effect, its entry.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { totpSecretOf } from "#actions/operators/second-factor.ts";
import { OPERATOR_OPERATIONS } from "../../scripts/generate/operator-operations.ts";
import { eventually, PATIENCE_MS } from "../eventually.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { Visitor } from "../oauth/oauth-setup.ts";
import { codeOf, type Browser } from "../operator/browser.ts";
import { leave, openOidcStage, type OidcStage } from "../operator/oidc-stage.ts";
import type { OperatorStage, Someone } from "../operator/stage.ts";
import { rewriteSigned } from "../sign-again.ts";
import { refuseEntries } from "./refuse-entries.ts";
import { readState } from "./installation-state.ts";
import { scheduleEffects } from "./schedule-effects.ts";
import { tokenEffects } from "./token-effects.ts";
import { webhookEffects } from "./webhook-effects.ts";

const DOCUMENTS = [
  "account: acme",
  "strategy: strat_acme\naccount: acme\nfields: [{ key: token, type: password }]\nlogin: { type: none }",
  `blueprint: asks
account: acme
nodes:
  - { id: data, type: input, refKey: data }
  - { id: list, type: parse, from: data, format: json }
  - { id: look, type: review, from: list, title: Look at it }
  - { id: out, type: output, refKey: out, from: look }`,
];

let oidc: OidcStage;
let stage: OperatorStage;
let caller: Caller;
let admin: Someone;
before(async () => {
  oidc = await openOidcStage();
  stage = oidc.operators;
  await stage.installation.apply(...DOCUMENTS);
  caller = openCaller(stage.service.url, await stage.installation.createKey("acme"));
  admin = await stage.operator("admin");
  await stage.giveSecondFactor(admin);
});
afterEach(async () => await refuseEntries(stage.db, false));
after(async () => await oidc?.[Symbol.asyncDispose]());

interface Asked {
  readonly browser: Browser;
  /** What stands for the names in braces. */
  readonly params?: Readonly<Record<string, string>>;
  readonly body?: object;
}

interface Effect {
  readonly actions: readonly string[];
  /** Makes what the operation is asked about, anew for each attempt. */
  ask(): Promise<Asked>;
}

const asAdmin = async (params: Readonly<Record<string, string>> = {}, body?: object): Promise<Asked> => ({
  browser: await stage.holding(admin),
  params,
  ...(body === undefined ? {} : { body }),
});

/** About an operator who was made for it. */
const onOperator = (
  action: string,
  body?: object,
  prepare?: (someone: Someone) => Promise<unknown>,
): Effect => ({
  actions: [action],
  ask: async () => {
    const someone = await stage.operator();
    await prepare?.(someone);
    return await asAdmin({ operatorId: someone.id }, body);
  },
});

/** By an operator who was made for it, in a session of their own. */
const byOperator = (
  action: string,
  ask: (someone: Someone, browser: Browser) => Promise<Partial<Asked>> | Partial<Asked>,
): Effect => ({
  actions: [action],
  ask: async () => {
    const someone = await stage.operator();
    const browser = await stage.holding(someone);
    return { browser, ...(await ask(someone, browser)) };
  },
});

const setOperator = async ({ id }: Someone, assignment: string): Promise<void> =>
  await rewriteSigned(stage.db, "operator", `${assignment} where id = $1`, [id]);

const nonce = Buffer.alloc(16);
const appOf = ({ id }: Someone): string =>
  codeOf(totpSecretOf(stage.signing.operators, { id, totpNonce: nonce }));

/** A run that waits for a person. */
async function waitingRun(): Promise<{ readonly id: string; readonly review: string }> {
  const { body } = await caller.post("/blueprints/asks/trigger", { data: "[]" });
  const review = await eventually(
    "it waits for a person",
    async () =>
      (
        await stage.db.query<{ id: string }>(
          `select review.id from review join run on run.id = review.run_id
           where run.id = $1 and review.status = 'open' and run.lease_owner is null`,
          [body.id],
        )
      )[0],
    PATIENCE_MS,
  );
  return { id: body.id, review: review.id };
}

const onCancelledRun = (action: string, body?: object): Effect => ({
  actions: [action],
  ask: async () => {
    const { id } = await waitingRun();
    await (await stage.holding(admin)).send("POST", `/runs/${id}/cancel`);
    return await asAdmin({ runId: id }, body);
  },
});

async function knownThere(): Promise<{ readonly someone: Someone; readonly login: string }> {
  const someone = await stage.operator();
  const login = someone.email.split("@")[0] ?? "";
  oidc.people.set(login, { email: someone.email, email_verified: true });
  await oidc.signIn(oidc.browser(), login);
  return { someone, login };
}

/** About what is made for it, as the parameters name it. */
const on = (
  action: string,
  make: () => Promise<Readonly<Record<string, string>>>,
  body?: object,
): Effect => ({
  actions: [action],
  ask: async () => await asAdmin(await make(), body),
});
const newSession = async () => ({
  sessionId: (await caller.post("/credential-sessions", { strategy_id: "strat_acme" })).body.id,
});
const newCredential = async () => ({ credentialId: await connect(caller, "strat_acme", { token: "t" }) });
const idOf = async (path: string, body: object): Promise<string> =>
  (await (await stage.holding(admin)).send("POST", path, body)).body.id;
const newKey = async () => ({ keyId: await idOf("/keys", { account: "acme" }) });

const newSecret = (name: string): object => ({
  account: "acme",
  name,
  origins: ["https://login.northwind.example"],
  value: "client-secret",
});

const BLUEPRINT = { account: "acme", blueprintKey: "asks", version: "1" };
const STRATEGY = { account: "acme", strategyId: "strat_acme", version: "1" };
let made = 0;

const typed = (text: string): object => ({ documents: [{ file: "typed.yaml", text }] });

/** A change of a document, so that there is something to go back to. */
async function changeDocument(text: string): Promise<void> {
  const { status, text: said } = await (
    await stage.holding(admin)
  ).send("POST", "/config/apply", typed(text));
  assert.equal(status, 200, said);
}
const changedBlueprint = (): string => `${DOCUMENTS[2]}\nname: Changed ${made++}`;
const changedStrategy = (): string => `${DOCUMENTS[1]}\nname: Changed ${made++}`;
const retire = async (kind: "blueprint" | "strategy", retired: boolean): Promise<void> =>
  await rewriteSigned(stage.db, kind, "retired = $1", [retired]);

const onDocument = (params: Readonly<Record<string, string>>, prepare: () => Promise<void>): Effect => ({
  actions: ["config.apply"],
  ask: async () => {
    await prepare();
    return await asAdmin(params);
  },
});

/** By somebody who is no admin: two must confirm it. */
async function newProposal(): Promise<string> {
  await stage.installation.apply("account: globex\ntwo_person: true");
  const proposer = await stage.operator("operator");
  await stage.giveSecondFactor(proposer);
  const { text, body } = await (
    await stage.holding(proposer)
  ).send("POST", "/config/apply", typed(`account: globex\nname: Globex ${made++}`));
  return body?.proposal?.id ?? assert.fail(text);
}

/** By operation; a text says why it has no entry. */
const EFFECTS: Readonly<Record<string, Effect | string>> = {
  signIn: {
    actions: ["operator.sign_in"],
    ask: async () => {
      const { email, password } = await stage.operator();
      return { browser: oidc.browser(), body: { email, password } };
    },
  },
  beginOidcSignIn: "a departure is nobody's yet; the way back has its entry",
  finishOidcSignIn: {
    actions: ["operator.oidc_link", "operator.sign_in"],
    ask: async () => {
      const someone = await stage.operator();
      const login = someone.email.split("@")[0] ?? "";
      oidc.people.set(login, { email: someone.email, email_verified: true });
      const browser = oidc.browser();
      return { browser, body: { query: await oidc.away(browser, login) } };
    },
  },
  beginOidcStepUp: "a departure changes nothing yet; the way back has its entry",
  finishOidcStepUp: {
    actions: ["operator.step_up"],
    ask: async () => {
      const { login } = await knownThere();
      const browser = oidc.browser();
      await oidc.signIn(browser, login);
      const url = await leave(browser, "/session/step-up/oidc/begin", undefined);
      return {
        browser,
        body: { query: new URL(await new Visitor().signIn(url, "agree", login)).search.slice(1) },
      };
    },
  },
  signOut: byOperator("operator.sign_out", () => ({})),
  stepUp: byOperator("operator.step_up", async (someone) => {
    await stage.giveSecondFactor(someone);
    return { body: { code: appOf(someone) } };
  }),
  endOwnSession: byOperator("operator.sign_out", async (_, browser) => {
    const { body } = await browser.send("GET", "/me");
    return { params: { sessionId: body.session_id } };
  }),
  changePassword: byOperator("operator.password_change", ({ password }) => ({
    body: { current_password: password, new_password: "correct horse battery staple" },
  })),
  beginSecondFactor: "an app counts from its first code on, which has its entry",
  confirmSecondFactor: byOperator("operator.totp_enrol", async (someone) => {
    await setOperator(someone, "totp_nonce = decode(repeat('00', 16), 'hex')");
    return { body: { code: appOf(someone) } };
  }),
  renewRecoveryCodes: byOperator("operator.recovery_codes", ({ password }) => ({
    body: { current_password: password },
  })),
  createOperator: {
    actions: ["operator.create"],
    ask: async () => await asAdmin({}, { email: `made-${made++}@example.com`, role: "viewer" }),
  },
  disableOperator: onOperator("operator.disable"),
  enableOperator: onOperator(
    "operator.enable",
    undefined,
    async (someone) => await setOperator(someone, "disabled_at = app_now()"),
  ),
  changeRole: onOperator("operator.role_change", { role: "reviewer" }),
  changeOperatorAccounts: onOperator("operator.accounts_change", { accounts: ["acme"] }),
  resetPassword: onOperator("operator.password_reset"),
  resetSecondFactor: onOperator(
    "operator.totp_reset",
    undefined,
    async (someone) => await stage.giveSecondFactor(someone),
  ),
  unlinkOperator: {
    actions: ["operator.oidc_unlink"],
    ask: async () => await asAdmin({ operatorId: (await knownThere()).someone.id }),
  },
  cancelRun: { actions: ["run.cancel"], ask: async () => await asAdmin({ runId: (await waitingRun()).id }) },
  purgeRun: onCancelledRun("run.purge"),
  runAgain: onCancelledRun("run.again", {}),
  approveReview: {
    actions: ["review.decide"],
    ask: async () => await asAdmin({ reviewId: (await waitingRun()).review }, {}),
  },
  rejectReview: {
    actions: ["review.decide"],
    ask: async () => await asAdmin({ reviewId: (await waitingRun()).review }, { reason: "no" }),
  },
  unlockCredential: {
    actions: ["credential.unlock"],
    ask: async () => {
      const made = await newCredential();
      await stage.db.query("update credential set login_rejections = 3 where id = $1", [made.credentialId]);
      return await asAdmin(made);
    },
  },
  testLogin: on("credential.test_login", newCredential),
  requestCredential: on("session.create", newCredential),
  deleteCredential: on("credential.delete", newCredential),
  linkCredentialSession: on("session.link", newSession),
  revokeCredentialSession: on("session.revoke", newSession),
  decideWrite: {
    actions: ["write.decide"],
    ask: async () => {
      const { id } = await waitingRun();
      await stage.db.query(
        `insert into run_write (account_id, run_id, node_id, ordinal, status, epoch, ended_at, detail)
         select account_id, id, 'send', 3, 'in_doubt', 1, app_now(), 'no answer' from run where id = $1`,
        [id],
      );
      return await asAdmin({ runId: id, node: "send", record: "3" }, { happened: true });
    },
  },
  decideWriteGroup: {
    actions: ["write.decide"],
    ask: async () => {
      const { id } = await waitingRun();
      const [row] = await stage.db.query<{ blueprint: string }>(
        `with doubt as (
           insert into run_write (account_id, run_id, node_id, ordinal, status, epoch, ended_at, detail)
           select account_id, id, $2, 3, 'in_doubt', 1, app_now(), 'no answer' from run where id = $1
         ) select blueprint.key as blueprint from run join blueprint on blueprint.id = run.blueprint_id where run.id = $1`,
        [id, `send_${made++}`],
      );
      const { blueprint = "" } = row ?? {};
      return await asAdmin({}, { account: "acme", blueprint, node: `send_${made - 1}`, happened: true });
    },
  },
  changeAccount: {
    actions: ["config.apply"],
    ask: async () => await asAdmin({ account: "acme" }, { name: `Acme ${made++}` }),
  },
  watchRunPage: "it changes nothing but that pictures of the page are taken, for a few seconds",
  noteAtReview: "it changes nothing but who is shown at a review, for a minute",
  checkConfig: "it changes nothing",
  previewForm: "it changes nothing",
  planConfig: "it changes nothing",
  applyConfig: {
    actions: ["config.apply"],
    ask: async () => await asAdmin({}, typed(changedStrategy())),
  },
  publishBlueprintVersion: onDocument(BLUEPRINT, async () => await changeDocument(changedBlueprint())),
  retireBlueprint: onDocument(BLUEPRINT, async () => await retire("blueprint", false)),
  restoreBlueprint: onDocument(BLUEPRINT, async () => await retire("blueprint", true)),
  startRun: "a run is its own record, with who has started it",
  publishStrategyVersion: onDocument(STRATEGY, async () => await changeDocument(changedStrategy())),
  retireStrategy: onDocument(STRATEGY, async () => await retire("strategy", false)),
  restoreStrategy: onDocument(STRATEGY, async () => await retire("strategy", true)),
  confirmProposal: on("proposal.confirm", async () => ({ proposalId: await newProposal() })),
  discardProposal: on("proposal.discard", async () => ({ proposalId: await newProposal() })),
  createKey: { actions: ["key.create"], ask: async () => await asAdmin({}, { account: "acme" }) },
  rotateKey: on("key.rotate", newKey, { overlap_seconds: 60 }),
  revokeKey: on("key.revoke", newKey),
  setSecret: { actions: ["secret.set"], ask: async () => await asAdmin({}, newSecret("NORTHWIND")) },
  deleteSecret: {
    actions: ["secret.delete"],
    ask: async () => {
      const secret = `NORTHWIND_${made++}`;
      await (await stage.holding(admin)).send("POST", "/secrets", newSecret(secret));
      return await asAdmin({ account: "acme", secret });
    },
  },
  ...tokenEffects(asAdmin, () => oidc.browser()),
  ...scheduleEffects(asAdmin, () => ({ stage, admin, caller })),
  ...webhookEffects(asAdmin, () => ({ stage, admin })),
};

const changing = OPERATOR_OPERATIONS.filter(({ method }) => method !== "get");

test("every operation that is no GET is in the table, and no other", () => {
  assert.deepEqual(Object.keys(EFFECTS).toSorted(), changing.map(({ id }) => id).toSorted());
});

const readEntries = async (): Promise<readonly { readonly action: string; readonly actor: string }[]> =>
  await stage.db.query("select id, action, actor_kind as actor from audit_entry order by occurred_at, id");

for (const { id, method, path, status } of changing) {
  const effect = EFFECTS[id];
  if (effect === undefined || typeof effect === "string") continue;
  test(`${id}: no entry, no effect; one effect, ${effect.actions.join(" and ")}`, async () => {
    const send = async ({ browser, params = {}, body }: Asked) =>
      await browser.send(
        method.toUpperCase(),
        path.replace(/\{(\w+)\}/g, (_all, name: string) => params[name] ?? assert.fail(name)),
        body,
      );
    const first = await effect.ask();
    const before = await readState(stage.db);
    const entriesBefore = await readEntries();
    await refuseEntries(stage.db, true);
    const refused = await send(first);
    await refuseEntries(stage.db, false);
    assert.equal(refused.status, 500, refused.text);
    assert.equal(await readState(stage.db), before, "something was done that is on no record");
    assert.deepEqual(await readEntries(), entriesBefore);

    const second = await effect.ask();
    const count = (await readEntries()).length;
    const answer = await send(second);
    assert.equal(answer.status, status, answer.text);
    assert.notEqual(await readState(stage.db), before);
    // What a run does by itself afterwards is no operator's.
    const entries = (await readEntries()).slice(count).filter(({ actor }) => actor === "operator");
    const actions = entries.map(({ action }) => action);
    assert.deepEqual(actions, effect.actions);
  });
}

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { noteExpired } from "#actions/sessions/note-expired-sessions.ts";
import { prepareVault } from "#actions/vault/prepare-vault.ts";
import { setAccountSecret } from "#actions/secrets/set-account-secret.ts";
import { lockOverdue } from "#db/operators/proposals.ts";
import { OPERATOR_OPERATIONS } from "../../scripts/generate/operator-operations.ts";
import { matchesSchema } from "#domain/matches-schema.ts";
import { readConfig } from "#service/settings/settings.ts";
import { openKeySource } from "#service/open-key-source.ts";
import { readKeys } from "#vault/key-source.ts";
import type { Vault } from "#vault/vault.ts";
import { connect, openCaller } from "../caller.ts";
import type { CommandResult } from "../service.ts";
import type { Browser, OperatorAnswer } from "./browser.ts";
import { openOperatorStage, type OperatorStage, type Someone } from "./stage.ts";

export const ON = "account: acme\ntwo_person: true";
export const HOME = "https://portal.example";
export const AWAY = "https://away.example";

export const strategy = (hosts: readonly string[], login = "{ type: none }", more = ""): string =>
  `strategy: strat_portal\naccount: acme\nhosts: [${hosts.map((host) => `"${host}"`).join(", ")}]\n` +
  `fields: [{ key: user, type: text }, { key: pin, type: password }]\nlogin: ${login}\n${more}`;

export const blueprint = (hosts: string, key = "asks"): string =>
  `blueprint: ${key}\naccount: acme\nhosts: [${hosts}]\nnodes:\n` +
  `  - { id: data, type: input, refKey: data }\n  - { id: list, type: parse, from: data, format: json }\n` +
  `  - { id: out, type: output, refKey: out, from: list }`;

/** Each kind of change that needs two admins: its name, a document, why. */
export const CHANGES: readonly (readonly [string, () => string, RegExp])[] = [
  [
    "a strategy's host",
    () => strategy([HOME, AWAY]),
    /strat_portal adds https:\/\/away\.example \(one credential/,
  ],
  [
    "an origin of a login",
    () =>
      strategy(
        [HOME],
        `{ type: oauth2, grant: client_credentials, client_id: x, client_secret: { secret: CLIENT }, token_url: "${AWAY}/token" }`,
      ),
    /adds https:\/\/away\.example/,
  ],
  [
    "a login",
    () => strategy([HOME], "{ type: basic, username: user, password: pin }"),
    /The login of .* changes/,
  ],
  [
    "what a login takes for a secret",
    () => strategy([HOME]).replace("type: password", "type: password, secret: false"),
    /The login of .* changes/,
  ],
  ["a Blueprint's host", () => blueprint(`"${HOME}", "${AWAY}"`), /blueprint acme\/asks adds/],
  ["a new Blueprint's host", () => blueprint(`"${AWAY}"`, "copy"), /blueprint acme\/copy adds/],
  ["turning it off", () => "account: acme", /turns `two_person` off/],
];

export const typed = (...texts: readonly string[]): object => ({
  documents: [{ file: "typed.yaml", text: texts.join("\n---\n") }],
});

/** An installation with an account that wants two admins, one credential, and three admins. */
export interface TwoPersonStage {
  readonly stage: OperatorStage;
  readonly vault: Vault;
  readonly credential: string;
  readonly anna: Someone;
  readonly ben: Someone;
  readonly carl: Someone;
  newAdmin(): Promise<Someone>;
  /** An answer that fits its schema when it is good. */
  ask(
    who: Someone | Browser,
    id: string,
    params?: Readonly<Record<string, string>>,
    body?: object,
  ): Promise<OperatorAnswer>;
  /** By an operator in the dashboard; gives what waits, and nothing was applied. */
  propose(who: Someone, ...texts: readonly string[]): Promise<{ id: string; reasons: string[] }>;
  confirm(who: Someone, proposalId: string): Promise<OperatorAnswer>;
  /** By each of them; gives the last answer. */
  agreed(proposalId: string, ...admins: readonly Someone[]): Promise<OperatorAnswer>;
  read(proposalId: string): Promise<any>;
  discard(proposalId: string): Promise<void>;
  latchkey(...words: readonly string[]): Promise<CommandResult>;
  /** `id`: of the proposal that the command names. */
  applyByCommand(...texts: readonly string[]): Promise<CommandResult & { readonly id: string }>;
  /** Everything that is in force, as one text. */
  inForce(): Promise<string>;
  /** A change that two admins have agreed to: for setting things up. */
  change(...texts: readonly string[]): Promise<void>;
}

export async function openTwoPersonStage(): Promise<TwoPersonStage> {
  const stage = await openOperatorStage();
  const { installation, db, signing } = stage;
  await installation.apply(ON, strategy([HOME]), blueprint(`"${HOME}"`));
  const caller = openCaller(stage.service.url, await installation.createKey("acme"));
  const credential = await connect(caller, "strat_portal", { user: "u", pin: "1234" });
  const vault = await prepareVault(db, await readKeys(openKeySource(readConfig(installation.environment))));
  await setAccountSecret(
    { db, vault, signing },
    { account: "acme", name: "CLIENT", value: "client-secret", origins: [AWAY] },
  );
  const newAdmin = async (): Promise<Someone> => {
    const admin = await stage.operator("admin");
    await stage.giveSecondFactor(admin);
    return admin;
  };
  const [anna, ben, carl] = [await newAdmin(), await newAdmin(), await newAdmin()];
  const ask: TwoPersonStage["ask"] = async (who, id, params = {}, body) => {
    const {
      method,
      path,
      status,
      answer: schema,
    } = OPERATOR_OPERATIONS.find((each) => each.id === id) ?? assert.fail(id);
    const browser = "send" in who ? who : await stage.holding(who);
    const answer = await browser.send(
      method.toUpperCase(),
      path.replace(/\{(\w+)\}/g, (_all, name: string) => params[name] ?? assert.fail(name)),
      body,
    );
    if (answer.status === status && schema) assert.ok(matchesSchema(schema, answer.body), answer.text);
    return answer;
  };
  const propose: TwoPersonStage["propose"] = async (who, ...texts) => {
    const { status, text, body } = await ask(who, "applyConfig", {}, typed(...texts));
    assert.equal(status, 200, text);
    assert.ok(body.proposal, "nobody was asked");
    assert.deepEqual(body.changes, []);
    return body.proposal;
  };
  const confirm: TwoPersonStage["confirm"] = async (who, proposalId) =>
    await ask(who, "confirmProposal", { proposalId });
  const agreed: TwoPersonStage["agreed"] = async (proposalId, ...admins) => {
    let last: OperatorAnswer | undefined;
    for (const each of admins) last = await confirm(each, proposalId);
    assert.equal(last?.status, 200, last?.text);
    return last ?? assert.fail();
  };
  const latchkey: TwoPersonStage["latchkey"] = async (...words) => await installation.command(...words);
  let files = 0;
  return {
    stage,
    vault,
    credential,
    anna,
    ben,
    carl,
    newAdmin,
    ask,
    propose,
    confirm,
    agreed,
    latchkey,
    read: async (proposalId) => (await ask(anna, "readProposal", { proposalId })).body,
    discard: async (proposalId) => {
      const { status, text } = await ask(anna, "discardProposal", { proposalId });
      assert.equal(status, 204, text);
    },
    applyByCommand: async (...texts) => {
      const file = join(installation.dataFolder, `push-${files++}.yaml`);
      writeFileSync(file, texts.join("\n---\n"));
      const result = await latchkey("apply", "-f", file);
      return { ...result, id: /prop_\w+/.exec(result.stderr)?.[0] ?? "" };
    },
    inForce: async () => {
      const { code, stdout, stderr } = await latchkey("export");
      assert.equal(code, 0, stderr);
      return stdout;
    },
    change: async (...texts) => void (await agreed((await propose(anna, ...texts)).id, ben)),
  };
}

/** Two processes note what has expired, the second one while the first is at it. Gives what is on record of a proposal before the first goes on. */
export async function noteExpiredBeside({ stage }: TwoPersonStage, id: string): Promise<readonly string[]> {
  const services = { db: stage.db, audit: stage.signing.audit };
  const meanwhile = await services.db.transaction(async (tx) => {
    await lockOverdue(tx, 10);
    await noteExpired(services);
    return await stage.actions(id);
  });
  await noteExpired(services);
  return meanwhile;
}

// docs/operator-api.md#accounts: operators and tokens that are limited to accounts. Default deny, operation by operation.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createOperatorToken } from "#actions/operators/manage-tokens.ts";
import type { OperatorOperation } from "#contract/operator/operation.ts";
import { limitOperatorTo } from "#actions/operators/manage-operators.ts";
import { findSource, saveSource } from "#db/document-sources.ts";
import { isPersonal } from "#domain/operator.ts";
import { OPERATOR_OPERATIONS } from "../../scripts/generate/operator-operations.ts";
import { connect, openCaller } from "../caller.ts";
import { runCommand } from "../cli/program.ts";
import { eventually } from "../eventually.ts";
import { bodyOf, documents, plantObjects } from "./account-objects.ts";
import type { OperatorAnswer } from "./browser.ts";
import { openOperatorStage, type OperatorStage } from "./stage.ts";

let stage: OperatorStage;
type Send = (method: string, path: string, body?: unknown) => Promise<OperatorAnswer>;

const HOLDERS = ["a token", "an operator"] as const;
type Holder = (typeof HOLDERS)[number];
/** Limited to acme; to acme and globex. The third account, initech, is nobody's here. */
const ofAcme = new Map<Holder, Send>();
const ofBoth = new Map<Holder, Send>();
/** By account: the ids of its objects, as paths name them. */
const objects = new Map<string, Readonly<Record<string, string>>>();

before(async () => {
  stage = await openOperatorStage();
  await stage.installation.apply(...["acme", "globex", "initech"].flatMap(documents));
  for (const account of ["acme", "globex", "initech"])
    objects.set(account, await plantObjects(stage, account));
  for (const [accounts, holders] of [
    [["acme"], ofAcme],
    [["globex", "acme"], ofBoth],
  ] as const) {
    const { token } = await createOperatorToken(
      { db: stage.db, signing: stage.signing, actor: { kind: "cli" } },
      { name: accounts.join(), role: "admin", lifetimeMs: 3_600_000, accounts },
    );
    holders.set("a token", async (...request) => await stage.withToken(token, ...request));
    holders.set("an operator", await personOf(accounts));
  }
});

/** An admin who is limited to accounts, with a second factor just given. */
async function personOf(accounts: readonly string[]): Promise<Send> {
  const someone = await stage.operator("admin", accounts);
  await stage.giveSecondFactor(someone);
  const browser = await stage.holding(someone);
  return async (method, path, body) => await browser.send(method, path, body);
}

after(async () => await stage?.[Symbol.asyncDispose]());

/** What can't be cut to accounts: refused to those who are limited to some. By hand: the rule in the code is what is tested. */
const REFUSED = [
  "listTokens",
  "createToken",
  "revokeToken",
  "listOperators",
  "createOperator",
  "disableOperator",
  "enableOperator",
  "changeRole",
  "changeOperatorAccounts",
  "resetPassword",
  "resetSecondFactor",
  "unlinkOperator",
  "readSystem",
];

/** What these require. */
const QUERIES: Readonly<Record<string, string>> = { search: "?q=acme", downloadResult: "?format=csv" };
const BODIES: Readonly<Record<string, object>> = {
  checkConfig: { documents: [{ file: "x.yaml", text: "account: acme" }] },
  previewForm: { text: "account: acme", language: "en", scheme: "light" },
};

/** All but one's own sign-in, which is of no account. */
const askedBy = (holder: Holder): readonly OperatorOperation[] =>
  OPERATOR_OPERATIONS.filter(
    ({ permission }) =>
      permission !== "open" &&
      permission !== "self.manage" &&
      (holder === "an operator" || !isPersonal(permission)),
  );

async function ask(
  send: Send | undefined,
  operation: OperatorOperation,
  account: string,
  { query = "", body = {} }: { readonly query?: string; readonly body?: object } = {},
): Promise<OperatorAnswer> {
  const named = objects.get(account) ?? assert.fail();
  const path = operation.path.replace(/\{(\w+)\}/g, (_all, name: string) => named[name] ?? "nothing");
  const isPost = operation.method === "post";
  return await (send ?? assert.fail())(
    operation.method.toUpperCase(),
    path + query,
    isPost ? body : undefined,
  );
}

const isRefused = ({ status, text }: OperatorAnswer): boolean =>
  status === 403 && text.includes("can't be limited to them");

for (const holder of HOLDERS) {
  test(`${holder}: what can't be cut is refused, and nothing else`, async () => {
    for (const operation of askedBy(holder)) {
      // Not yet: what changes something is asked about the other account, below.
      if (operation.method !== "get" && !REFUSED.includes(operation.id)) continue;
      const answer = await ask(ofAcme.get(holder), operation, "acme", {
        query: QUERIES[operation.id] ?? "",
        body: BODIES[operation.id] ?? {},
      });
      assert.equal(isRefused(answer), REFUSED.includes(operation.id), `${operation.id}: ${answer.text}`);
      assert.ok(answer.status < 500, `${operation.id}: ${answer.text}`);
    }
  });

  test(`${holder}: no answer about the own account has anything of another one`, async () => {
    let lists = 0;
    for (const operation of askedBy(holder).filter(
      ({ id, method }) => method === "get" && !REFUSED.includes(id),
    )) {
      const query = QUERIES[operation.id] ?? "";
      const { status, text } = await ask(ofAcme.get(holder), operation, "acme", { query });
      assert.ok(status < 500, `${operation.id}: ${text}`);
      assert.doesNotMatch(text, /globex|initech/, operation.id);
      const other = objects.get("globex") ?? assert.fail();
      for (const name of [
        "runId",
        "reviewId",
        "credentialId",
        "keyId",
        "sessionId",
        "webhookId",
        "scheduleId",
        "chain",
      ])
        assert.ok(!text.includes(other[name] ?? ""), `${operation.id} has another account's ${name}`);
      if (status === 200 && /acme/.test(text)) lists++;
    }
    assert.ok(lists > 15, `only ${lists} answers had anything of their own`);
  });

  test(`${holder}: another account and its objects are as if they did not exist, for every operation that names them`, async () => {
    const before = await stateOf();
    for (const operation of askedBy(holder)) {
      const inQuery = Object.hasOwn(operation.query?.properties ?? {}, "account");
      if (REFUSED.includes(operation.id) || (operation.accounts !== undefined && !inQuery)) continue;
      const query = inQuery && operation.method === "get" ? "?account=globex" : "";
      const required = QUERIES[operation.id] ?? query;
      const body = bodyOf(operation);
      const answer = await ask(ofAcme.get(holder), operation, "globex", { query: required, body });
      assert.equal(answer.status, 404, `${operation.id}: ${answer.status} ${answer.text}`);
    }
    assert.equal(await stateOf(), before);
  });

  test(`${holder}: a list has what is of all their accounts, or of the one that is named; a search likewise`, async () => {
    const send = ofBoth.get(holder) ?? assert.fail();
    const accountsIn = async (path: string): Promise<ReadonlySet<string>> =>
      new Set((await send("GET", path)).body.items.map((each: any) => each.account));
    for (const path of [
      "/runs",
      "/credentials",
      "/credential-sessions",
      "/schedules",
      "/reviews",
      "/blueprints",
      "/accounts",
    ]) {
      assert.deepEqual(await accountsIn(path), new Set(["acme", "globex"]), path);
      if (path === "/accounts") continue;
      assert.deepEqual(await accountsIn(`${path}?account=globex`), new Set(["globex"]), path);
      assert.equal((await send("GET", `${path}?account=initech`)).status, 404, path);
    }
    const found = async (text: string): Promise<readonly string[]> => {
      const { runs, others } = (await send("GET", `/search?q=${text}`)).body;
      return [...runs, ...others].map(({ account }: any) => account);
    };
    assert.deepEqual(new Set(await found("asks")), new Set(["acme", "globex"]));
    for (const name of ["runId", "credentialId", "sessionId", "account"])
      assert.deepEqual(await found(objects.get("initech")?.[name] ?? ""), [], name);
    const { needs_people: needs } = (await send("GET", "/overview")).body;
    assert.deepEqual([needs.reviews, (await send("GET", "/overview?hours=1")).status], [2, 200]);
    const runs = (await send("GET", "/overview")).body.hours.map(({ running }: any) => running);
    assert.equal(Math.max(...runs), 2);
  });

  test(`${holder}: an export has one account, by name`, async () => {
    const send = ofBoth.get(holder) ?? assert.fail();
    const unnamed = await send("GET", "/config/export");
    assert.deepEqual([unnamed.status, unnamed.body.error.details[0].field], [422, "account"]);
    assert.match(unnamed.text, /limited to acme, globex/);
    assert.doesNotMatch((await send("GET", "/config/export?account=globex")).text, /acme|initech/);
  });
}

const stateOf = async (): Promise<string> =>
  JSON.stringify(
    await stage.db.query(
      `select (select count(*) from audit_entry) as entries, (select count(*) from api_key) as keys,
         (select string_agg(status, ',' order by id) from run) as runs, (select count(*) from webhook_endpoint) as endpoints`,
    ),
  );

for (const holder of HOLDERS)
  test(`${holder}: documents of another account are neither checked, planned nor applied, also beside own ones and for a new account`, async () => {
    const send = ofAcme.get(holder) ?? assert.fail();
    const typed = (...texts: string[]) => ({
      documents: texts.map((text, at) => ({ file: `${at}.yaml`, text })),
    });
    for (const path of ["/config/check", "/config/plan", "/config/apply"]) {
      for (const wrong of ["account: globex\nname: Taken over", "account: hooli"]) {
        const answer = await send("POST", path, typed("account: acme\nname: Mine", wrong));
        assert.equal(answer.status, 404, `${path}: ${answer.text}`);
      }
      // No problem and no warning names anything of the other account, however near the mistake is.
      const near = await send("POST", path, typed("blueprint: x\naccount: globe\nnodes: []"));
      assert.doesNotMatch(near.text, /globex/);
      const own = await send("POST", path, typed("account: acme\nname: Mine"));
      assert.equal(own.status, 200, own.text);
      assert.doesNotMatch(own.text, /NEEDED_BY_GLOBEX/);
    }
    // The preview would show the other account's appearance.
    const [, , strategy = ""] = documents("globex");
    const preview = { text: strategy, language: "en", scheme: "light" };
    assert.ok([404, 422].includes((await send("POST", "/strategies/preview", preview)).status));
    const names = await stage.db.query("select slug, name from account order by slug");
    assert.deepEqual(names, [
      { slug: "acme", name: "Mine" },
      { slug: "globex", name: "globex" },
      { slug: "initech", name: "initech" },
    ]);
  });

test("a stream of changes is limited to the operator's accounts", async () => {
  const someone = await stage.operator("viewer", ["acme"]);
  const { cookie } = await stage.holding(someone);
  const hangUp = new AbortController();
  const { signal } = hangUp;
  const answer = await fetch(`${stage.service.url}/operator/v1/events`, { headers: { cookie }, signal });
  assert.equal(answer.status, 200);
  let heard = "";
  const listening = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of answer.body ?? []) heard += decoder.decode(chunk, { stream: true });
  })().catch(() => undefined);
  const begin = async (account: string): Promise<string> => {
    const caller = openCaller(stage.service.url, await stage.installation.createKey(account));
    return (await caller.post("/blueprints/asks/trigger", { data: "[]" })).body.id;
  };
  const [theirs, own] = [await begin("globex"), await begin("acme")];
  await eventually("the own run's change", () => heard.includes(own) || undefined);
  await eventually("the other run's review", async () => {
    const rows = await stage.db.query("select 1 from review where run_id = $1", [theirs]);
    return rows.length > 0 || undefined;
  });
  const another = await begin("acme");
  await eventually("a later change", () => heard.includes(another) || undefined);
  assert.ok(!heard.includes(theirs), heard);
  hangUp.abort();
  await listening;
});

test("the limit is made by name, is listed, and is signed: nobody widens it in the database", async () => {
  const words = ["tokens", "create", "--role", "viewer", "--name", "cut", "--expires", "1h", "--json"];
  const made = JSON.parse(
    (await runCommand(stage.installation, 0, [...words, "--account", "acme,globex"])).stdout,
  );
  const { items } = JSON.parse(
    (await runCommand(stage.installation, 0, ["tokens", "list", "--json"])).stdout,
  );
  assert.deepEqual(items.find(({ id }: any) => id === made.id).accounts, ["acme", "globex"]);
  assert.match(
    (await runCommand(stage.installation, 1, [...words, "--account", "none"])).stderr,
    /no account "none"/,
  );
  await runCommand(stage.installation, 2, [...words, "--account", "acme,"]);
  const runs = async () => (await stage.withToken(made.token, "GET", "/runs?account=acme")).status;
  assert.equal(await runs(), 200);
  await stage.db.query("update operator_token set account_ids = null where id = $1", [made.id]);
  assert.equal(await runs(), 401);
});

test("an operator's limit is changed with an audit entry, ends their sessions, and is signed", async () => {
  const someone = await stage.operator("viewer");
  const runs = async (browser: { send: Send }) => await browser.send("GET", "/runs");
  const open = await stage.holding(someone);
  assert.equal((await runs(open)).status, 200);
  const limited = await runCommand(stage.installation, 0, [
    "operators",
    "limit",
    someone.email,
    "--account",
    "acme",
  ]);
  assert.match(limited.stderr + limited.stdout, /limited to acme/);
  assert.equal((await runs(open)).status, 401);
  const again = await stage.holding(someone);
  const accounts = new Set((await runs(again)).body.items.map((run: any) => run.account));
  assert.deepEqual(accounts, new Set(["acme"]));
  assert.deepEqual((await again.send("GET", "/me")).body.accounts, ["acme"]);
  assert.deepEqual(
    (await stage.actions(someone.id)).filter((action) => action === "operator.accounts_change"),
    ["operator.accounts_change"],
  );
  const { items } = JSON.parse(
    (await runCommand(stage.installation, 0, ["operators", "list", "--json"])).stdout,
  );
  assert.deepEqual(items.find(({ id }: any) => id === someone.id).accounts, ["acme"]);
  // A row that was changed by hand is no operator's.
  for (const forged of ["null", "array(select id from account where slug = 'globex')"]) {
    const [before] = await stage.db.query<{ ids: string[] }>(
      "select account_ids as ids from operator where id = $1",
      [someone.id],
    );
    await stage.db.query(`update operator set account_ids = ${forged} where id = $1`, [someone.id]);
    assert.equal((await runs(again)).status, 401);
    await stage.db.query("update operator set account_ids = $2 where id = $1", [someone.id, before?.ids]);
  }
  assert.equal((await runs(again)).status, 200);
  await runCommand(stage.installation, 0, ["operators", "limit", someone.email, "--all"]);
  await runCommand(stage.installation, 1, ["operators", "limit", someone.email]);
  const [stored] = await stage.db.query("select account_ids as ids from operator where id = $1", [
    someone.id,
  ]);
  assert.deepEqual(stored, { ids: null });
});

test("a limited admin's token is never wider, and the last admin of all accounts can't be limited", async () => {
  const limited = await stage.operator("admin", ["acme"]);
  const by = { db: stage.db, signing: stage.signing, actor: { kind: "operator", id: limited.id } } as const;
  const request = { name: "of them", role: "viewer", lifetimeMs: 3_600_000 } as const;
  await assert.rejects(
    createOperatorToken(by, { ...request, accounts: ["acme", "globex"] }),
    /can't have others/,
  );
  const { token } = await createOperatorToken(by, { ...request, accounts: null });
  const { items } = (await stage.withToken(token, "GET", "/runs")).body;
  assert.deepEqual(new Set(items.map((run: any) => run.account)), new Set(["acme"]));
  const context = { ...by, actor: { kind: "cli" } } as const;
  const last = await stage.operator("admin");
  // The other admins of this test are limited: they can't manage operators.
  await stage.db.query("update operator set disabled_at = app_now() where account_ids is null and id <> $1", [
    last.id,
  ]);
  await assert.rejects(limitOperatorTo(context, last.id, ["acme"]), /is the only admin/);
  await stage.operator("admin");
  await limitOperatorTo(context, last.id, ["acme"]);
});

test("a document that two accounts have under one name has the text of its own account", async () => {
  const named = (accountId: string) => ({ kind: "strategy", accountId, name: "strat_bank" }) as const;
  const ids = ["acme", "globex"].map((account) => objects.get(account)?.["chain"] ?? "");
  for (const id of ids) await saveSource(stage.db, named(id), `# of ${id}`);
  for (const id of ids) assert.equal(await findSource(stage.db, named(id), 1), `# of ${id}`);
});

test("a proposal is seen and confirmed by admins of all its accounts, and by no others", async () => {
  const strategy = (...hosts: string[]): string =>
    `strategy: strat_duo\naccount: duo\nhosts: [${hosts.join()}]\nfields: [{ key: token, type: password }]\nlogin: { type: bearer, token: token }`;
  await stage.installation.apply("account: duo\ntwo_person: true", strategy("https://a.example"));
  const caller = openCaller(stage.service.url, await stage.installation.createKey("duo"));
  // With a credential, a change of where it may go needs two admins.
  await connect(caller, "strat_duo", { token: "t" });
  const wider = strategy("https://a.example", "https://b.example");
  const propose = async (...texts: string[]): Promise<string> => {
    const proposer = await personOf(["acme", "duo"]);
    const documents = texts.map((text, at) => ({ file: `${at}.yaml`, text }));
    const answer = await proposer("POST", "/config/apply", { documents });
    return answer.body.proposal?.id ?? assert.fail(answer.text);
  };
  const both = await propose("account: acme\nname: By two", wider);
  const one = await propose(wider);
  const listed = async (send: Send) =>
    new Set((await send("GET", "/proposals?waiting=true")).body.items.map(({ id }: any) => id));
  const [duo, acme, all] = [
    await personOf(["duo"]),
    await personOf(["acme"]),
    await personOf(["duo", "acme"]),
  ];
  assert.deepEqual(await listed(duo), new Set([one]));
  assert.deepEqual(await listed(acme), new Set());
  assert.deepEqual(await listed(all), new Set([both, one]));
  for (const [send, id] of [
    [duo, both],
    [acme, both],
    [acme, one],
  ] as const) {
    assert.equal((await send("GET", `/proposals/${id}`)).status, 404);
    assert.equal((await send("POST", `/proposals/${id}/confirm`, {})).status, 404);
    assert.equal((await send("POST", `/proposals/${id}/discard`, {})).status, 404);
  }
  const done = await duo("POST", `/proposals/${one}/confirm`, {});
  assert.deepEqual([done.status, done.body.status], [200, "applied"], done.text);
});

// docs/operator-api.md#operator-tokens: a token that is limited to accounts. Default deny, operation by operation.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createOperatorToken } from "#actions/operators/manage-tokens.ts";
import type { OperatorOperation } from "#contract/operator/operation.ts";
import { isPersonal } from "#domain/operator.ts";
import { OPERATOR_OPERATIONS } from "../../scripts/generate/operator-operations.ts";
import { connect, openCaller } from "../caller.ts";
import { runCommand } from "../cli/program.ts";
import { eventually, PATIENCE_MS } from "../eventually.ts";
import type { OperatorAnswer } from "./browser.ts";
import { openOperatorStage, type OperatorStage } from "./stage.ts";

let stage: OperatorStage;
let token: string;
let ofBoth: string;
/** By account: the ids of its objects, as paths name them. */
const objects = new Map<string, Readonly<Record<string, string>>>();

const documents = (account: string): readonly string[] => [
  `account: ${account}`,
  `strategy: strat_bank\naccount: ${account}
hosts: [https://api.bank.example]
login: { type: oauth2, client_id: x, client_secret: { secret: NEEDED_BY_${account.toUpperCase()} }, issuer: "https://login.bank.example" }`,
  `strategy: strat_${account}\naccount: ${account}\nfields: [{ key: token, type: password }]\nlogin: { type: none }`,
  `blueprint: asks
account: ${account}
nodes:
  - { id: data, type: input, refKey: data }
  - { id: list, type: parse, from: data, format: json }
  - { id: look, type: review, from: list, title: Of ${account} }
  - { id: out, type: output, refKey: out, from: look }`,
];

before(async () => {
  stage = await openOperatorStage();
  await stage.installation.apply(...documents("acme"), ...documents("globex"));
  for (const account of ["acme", "globex"]) await plant(account);
  const create = async (accounts: readonly string[]) =>
    await createOperatorToken(
      { db: stage.db, signing: stage.signing, actor: { kind: "cli" } },
      { name: accounts.join(), role: "admin", lifetimeMs: 3_600_000, accounts },
    );
  token = (await create(["acme"])).token;
  ofBoth = (await create(["globex", "acme"])).token;
});
after(async () => await stage?.[Symbol.asyncDispose]());

async function plant(account: string): Promise<void> {
  const caller = openCaller(stage.service.url, await stage.installation.createKey(account));
  const credentialId = await connect(caller, `strat_${account}`, { token: "t" });
  const { body } = await caller.post("/blueprints/asks/trigger", { data: "[]", run_name: `of ${account}` });
  const reviewId = await eventually(
    "it waits for a person",
    async () =>
      (await stage.db.query<{ id: string }>("select id from review where run_id = $1", [body.id]))[0]?.id,
    PATIENCE_MS,
  );
  const [key] = await stage.db.query<{ id: string }>(
    "select key.id from api_key key join account on account.id = key.account_id where slug = $1",
    [account],
  );
  const terms = { blueprint_key: "asks", cron: "0 0 1 1 *", time_zone: "UTC", trigger: { data: "[]" } };
  await caller.put("/schedules/yearly", terms);
  const [schedule] = await stage.db.query<{ id: string }>(
    "select schedule.id from schedule join account on account.id = schedule.account_id where slug = $1",
    [account],
  );
  const [planted] = await stage.db.query<{ sessionId: string; webhookId: string }>(
    `with endpoint as (
       insert into webhook_endpoint (id, account_id, url, events)
       select 'we_' || slug, id, 'https://example.com/' || slug, '{run.purged}' from account where slug = $1 returning id, account_id
     )
     select session.id as "sessionId", endpoint.id as "webhookId"
     from endpoint join credential_session session on session.account_id = endpoint.account_id`,
    [account],
  );
  objects.set(account, {
    ...planted,
    account,
    credentialId,
    reviewId,
    runId: body.id,
    keyId: key?.id ?? "",
    scheduleId: schedule?.id ?? "",
    strategyId: `strat_${account}`,
    blueprintKey: "asks",
    version: "1",
    resultKey: "out",
    refKey: "data",
    node: "list",
    record: "0",
    secret: "NONE",
  });
}

/** What can't be cut to accounts: refused to a token that is limited to some. By hand: the rule in the code is what is tested. */
const REFUSED = [
  "listTokens",
  "listOperators",
  "search",
  "watchChanges",
  "readOverview",
  "readSystem",
  "listAccounts",
  "listAuditChains",
  "verifyAuditChain",
  "checkConfig",
  "previewForm",
  "readProposal",
  "discardProposal",
];

/** What these require. */
const QUERIES: Readonly<Record<string, string>> = { search: "?q=acme", downloadResult: "?format=csv" };
const BODIES: Readonly<Record<string, object>> = {
  checkConfig: { documents: [{ file: "x.yaml", text: "account: acme" }] },
  previewForm: { text: "account: acme", language: "en", scheme: "light" },
};

const asked = OPERATOR_OPERATIONS.filter(
  ({ permission }) => permission !== "open" && !isPersonal(permission),
);

async function ask(
  operation: OperatorOperation,
  account: string,
  {
    as = token,
    query = "",
    body = {},
  }: { readonly as?: string; readonly query?: string; readonly body?: object } = {},
): Promise<OperatorAnswer> {
  const named = objects.get(account) ?? assert.fail();
  const path = operation.path.replace(/\{(\w+)\}/g, (_all, name: string) => named[name] ?? "nothing");
  const isPost = operation.method === "post";
  return await stage.withToken(as, operation.method.toUpperCase(), path + query, isPost ? body : undefined);
}

const isRefused = ({ status, text }: OperatorAnswer): boolean =>
  status === 403 && text.includes("can't be limited to them");

test("what can't be cut is refused, and nothing else", async () => {
  for (const operation of asked) {
    // Not yet: what changes something is asked about the other account, below.
    if (operation.method !== "get" && !REFUSED.includes(operation.id)) continue;
    const answer = await ask(operation, "acme", {
      query: QUERIES[operation.id] ?? "",
      body: BODIES[operation.id] ?? {},
    });
    assert.equal(isRefused(answer), REFUSED.includes(operation.id), `${operation.id}: ${answer.text}`);
    assert.ok(answer.status < 500, `${operation.id}: ${answer.text}`);
  }
});

test("no answer about the own account has anything of another one", async () => {
  let lists = 0;
  for (const operation of asked.filter(({ id, method }) => method === "get" && !REFUSED.includes(id))) {
    const { status, text } = await ask(operation, "acme");
    assert.doesNotMatch(text, /globex/, operation.id);
    const other = objects.get("globex") ?? assert.fail();
    for (const name of ["runId", "reviewId", "credentialId", "keyId", "sessionId", "webhookId"])
      assert.ok(!text.includes(other[name] ?? ""), `${operation.id} has another account's ${name}`);
    if (status === 200 && /acme/.test(text)) lists++;
  }
  assert.ok(lists > 10, `only ${lists} answers had anything of their own`);
});

test("another account and its objects are as if they did not exist, for every operation that names them", async () => {
  const state = async (): Promise<string> =>
    JSON.stringify(
      await stage.db.query(
        `select (select count(*) from audit_entry) as entries, (select count(*) from api_key) as keys,
           (select string_agg(status, ',' order by id) from run) as runs, (select count(*) from webhook_endpoint) as endpoints`,
      ),
    );
  const before = await state();
  for (const operation of asked.filter(
    ({ id, accounts }) => !REFUSED.includes(id) && accounts === undefined,
  )) {
    const inQuery = Object.hasOwn(operation.query?.properties ?? {}, "account");
    const query = inQuery && operation.method === "get" ? "?account=globex" : "";
    const required = QUERIES[operation.id] ?? query;
    const answer = await ask(operation, "globex", { query: required, body: bodyOf(operation) });
    assert.equal(answer.status, 404, `${operation.id}: ${answer.status} ${answer.text}`);
  }
  assert.equal(await state(), before);
});

/** What its schema requires, about the other account. */
function bodyOf({ id }: OperatorOperation): object {
  if (id === "createKey") return { account: "globex" };
  if (id === "resendFailedWebhooks") return { since: "2026-01-01T00:00:00Z" };
  if (id === "triggerWebhookEvent") return { account: "globex", type: "run.completed" };
  if (id === "createWebhook") return { account: "globex", url: "https://x.example" };
  if (id === "setSecret")
    return { account: "globex", name: "X", origins: ["https://x.example"], value: "secret" };
  if (id === "decideWriteGroup")
    return { account: "globex", blueprint: "asks", node: "list", happened: true };
  if (id === "decideWrite") return { happened: true };
  if (id === "rejectReview") return { reason: "no" };
  if (id === "rotateKey" || id === "rotateWebhook") return { overlap_seconds: 0 };
  return {};
}

test("documents of another account are neither planned nor applied, also beside own ones and for a new account", async () => {
  const typed = (...texts: string[]) => ({
    documents: texts.map((text, at) => ({ file: `${at}.yaml`, text })),
  });
  for (const path of ["/config/plan", "/config/apply"]) {
    for (const wrong of ["account: globex\nname: Taken over", "account: initech"]) {
      const answer = await stage.withToken(token, "POST", path, typed("account: acme\nname: Mine", wrong));
      assert.equal(answer.status, 404, `${path}: ${answer.text}`);
    }
    // No problem and no warning names anything of the other account, however near the mistake is.
    const near = await stage.withToken(token, "POST", path, typed("blueprint: x\naccount: globe\nnodes: []"));
    assert.doesNotMatch(near.text, /globex/);
    const own = await stage.withToken(token, "POST", path, typed("account: acme\nname: Mine"));
    assert.equal(own.status, 200, own.text);
    assert.doesNotMatch(own.text, /NEEDED_BY_GLOBEX/);
  }
  const names = await stage.db.query("select slug, name from account order by slug");
  assert.deepEqual(names, [
    { slug: "acme", name: "Mine" },
    { slug: "globex", name: "globex" },
  ]);
});

test("a list of a token for several accounts needs one of them by name", async () => {
  const list = async (query: string) => await stage.withToken(ofBoth, "GET", `/runs${query}`);
  const unnamed = await list("");
  assert.deepEqual([unnamed.status, unnamed.body.error.details[0].field], [422, "account"]);
  assert.match(unnamed.text, /limited to acme, globex/);
  for (const account of ["acme", "globex"]) {
    const { items } = (await list(`?account=${account}`)).body;
    assert.deepEqual(new Set(items.map((run: any) => run.account)), new Set([account]));
  }
  assert.equal((await list("?account=initech")).status, 404);
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

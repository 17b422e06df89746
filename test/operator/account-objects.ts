import type { OperatorOperation } from "#contract/operator/operation.ts";
import { connect, openCaller } from "../caller.ts";
import { eventually, PATIENCE_MS } from "../eventually.ts";
import type { OperatorStage } from "./stage.ts";

/** An account with a strategy that lacks a secret, one that can be connected, and a Blueprint that waits for a person. */
export const documents = (account: string): readonly string[] => [
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

/** One object of each kind; gives their ids, as paths name them. */
export async function plantObjects(
  stage: OperatorStage,
  account: string,
): Promise<Readonly<Record<string, string>>> {
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
  const [planted] = await stage.db.query<{ sessionId: string; webhookId: string; chain: string }>(
    `with endpoint as (
       insert into webhook_endpoint (id, account_id, url, events)
       select 'we_' || slug, id, 'https://example.com/' || slug, '{run.purged}' from account where slug = $1 returning id, account_id
     )
     select session.id as "sessionId", endpoint.id as "webhookId", session.account_id as chain
     from endpoint join credential_session session on session.account_id = endpoint.account_id`,
    [account],
  );
  return {
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
  };
}

/** What the schema of an operation requires, about the account globex. */
export function bodyOf({ id }: OperatorOperation): object {
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
  if (id === "noteAtReview") return { state: "viewing" };
  if (id === "rotateKey" || id === "rotateWebhook") return { overlap_seconds: 0 };
  return {};
}

// docs/webhooks.md#endpoints-in-the-accounts-document: an account's document has its endpoints.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { addDeliveryJobs } from "#db/webhooks/webhook-deliveries.ts";
import { refuseEntries } from "../audit/refuse-entries.ts";
import { runCommand } from "../cli/program.ts";
import { until } from "../eventually.ts";
import { install } from "../service.ts";
import { isSignedBy, startReceiver, type Receiver } from "./stage.ts";

let receiver: Receiver;
let installation: Awaited<ReturnType<typeof install>>;

before(async () => {
  receiver = await startReceiver();
  installation = await install();
  await installation.apply("account: acme", "account: other");
  await installation.serve();
});
after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await receiver?.close();
});

const document = (...webhooks: readonly string[]): string =>
  `account: acme\nwebhooks: [${webhooks.join(", ")}]\n`;

/** A command with the document in a file. */
async function onDocument(code: number, command: string, text: string) {
  const file = join(installation.dataFolder, "account.yaml");
  writeFileSync(file, text);
  return await runCommand(installation, code, [command, "-f", file]);
}

async function endpoints(): Promise<readonly any[]> {
  const { stdout } = await runCommand(installation, 0, ["webhooks", "list", "--account", "acme", "--json"]);
  return JSON.parse(stdout).items;
}

const shown = async () =>
  (await endpoints()).map(({ url, events, description, is_from_document: isOfDocument }) => [
    new URL(url).pathname,
    events.join(" "),
    description,
    isOfDocument,
  ]);

const actionsOf = async (): Promise<readonly string[]> =>
  (
    await installation.database.db.query<{ action: string }>(
      `select action from audit_entry where action like 'webhook.%' order by occurred_at, id`,
    )
  ).map(({ action }) => action);

test("apply creates, changes and deletes them, plan shows it, export prints it, and nothing is done twice", async () => {
  const a = `{ url: "${receiver.url}/a", events: ["run.*"], description: The backend }`;
  const b = `{ url: "${receiver.url}/b" }`;
  assert.match((await onDocument(3, "plan", document(a, b))).stdout, /webhooks/);
  const { stderr } = await onDocument(0, "apply", document(a, b));
  assert.match(stderr, /\/a of the account acme has no signing secret yet.*latchkey webhooks rotate/);
  assert.deepEqual(await shown(), [
    ["/a", "run.*", "The backend", true],
    ["/b", "*", "", true],
  ]);
  const ids = (await endpoints()).map(({ id }) => id);
  await onDocument(0, "plan", document(a, b));
  const changed = a.replace("run.*", "run.failed");
  await onDocument(0, "apply", document(changed));
  assert.deepEqual(await shown(), [["/a", "run.failed", "The backend", true]]);
  assert.deepEqual(
    (await endpoints()).map(({ id }) => id),
    ids.slice(0, 1),
    "it is the same one",
  );
  assert.match((await runCommand(installation, 0, ["export", "--account", "acme"])).stdout, /run\.failed/);
  assert.deepEqual(await actionsOf(), [
    "webhook.create",
    "webhook.create",
    "webhook.delete",
    "webhook.update",
  ]);
  await onDocument(0, "apply", document());
  assert.deepEqual(await shown(), []);
});

test("a new one gets nothing until its secret was shown, and then everything", async () => {
  await onDocument(0, "apply", document(`{ url: "${receiver.url}/late" }`));
  const [{ id }] = await endpoints();
  const { db } = installation.database;
  const refused = await runCommand(installation, 1, ["webhooks", "ping", id]);
  assert.match(refused.stderr, new RegExp(`no signing secret yet.*latchkey webhooks rotate ${id}`));
  await runCommand(installation, 0, ["webhooks", "trigger", "run.completed", "--account", "acme"]);
  // The next look of the worker has no job for it.
  const waiting = `select 1 from webhook_delivery where endpoint_id = $1 and attempts = 0 and due_at is not null`;
  assert.equal((await db.query(waiting, [id])).length, 1);
  await db.transaction(async (tx) => {
    await addDeliveryJobs(tx, 10, 0);
    const jobs = await tx.query("select 1 from graphile_worker.jobs where key = $1", [`webhooks:${id}`]);
    assert.deepEqual(jobs, []);
  });
  const { stdout } = await runCommand(installation, 0, ["webhooks", "rotate", id, "--json"]);
  const { secret } = JSON.parse(stdout);
  await until("it has come", () => receiver.at("/late").length > 0);
  const [delivery] = receiver.at("/late");
  assert.ok(delivery && isSignedBy(secret, delivery));
  assert.equal(delivery.event.type, "run.completed");
  assert.equal(receiver.at("/late").length, 1);
});

test("one that was created otherwise is taken over with its secret, and only the document deletes it", async () => {
  await onDocument(0, "apply", document());
  const url = `${receiver.url}/taken-over`;
  const made = await runCommand(installation, 0, ["webhooks", "create", url, "--account", "acme", "--json"]);
  const { id, secret } = JSON.parse(made.stdout);
  const { stderr } = await onDocument(0, "apply", document(`{ url: "${url}", events: ["run.*"] }`));
  assert.doesNotMatch(stderr, /no signing secret/);
  assert.deepEqual(await shown(), [["/taken-over", "run.*", "", true]]);
  const refused = await runCommand(installation, 1, ["webhooks", "delete", id]);
  assert.match(refused.stderr, /is in the document of the account acme: remove it there/);
  await runCommand(installation, 0, ["webhooks", "ping", id]);
  await until("it has come", () => receiver.at("/taken-over").length > 0);
  assert.ok(isSignedBy(secret, receiver.at("/taken-over")[0] ?? assert.fail()));
});

test("with an entry that can't be written, or too many endpoints, nothing is changed", async () => {
  const before = await shown();
  const { db } = installation.database;
  await refuseEntries(db, true);
  await onDocument(1, "apply", document());
  await refuseEntries(db, false);
  assert.deepEqual(await shown(), before);
  for (let n = 0; n < 19; n++)
    await db.query(
      `insert into webhook_endpoint (id, account_id, url, events)
       select 'we_made' || $1, id, 'https://made.example/' || $1, '{*}' from account where slug = 'acme'`,
      [String(n)],
    );
  const { stderr } = await onDocument(
    1,
    "apply",
    document(`{ url: "https://one.example/" }`, `{ url: "https://two.example/" }`),
  );
  assert.match(stderr, /more than 20 webhook endpoints/);
});

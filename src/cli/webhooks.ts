import { InvalidArgumentError, Option, type Command } from "commander";
import type { ListedDelivery } from "#db/webhooks/webhook-deliveries.ts";
import type { WebhookEndpoint } from "#db/webhooks/webhook-endpoints.ts";
import { parseDuration } from "#domain/duration.ts";
import { ENDPOINT_STATE_NAMES as names, endpointState } from "#domain/labels/webhooks.ts";
import { limits } from "#domain/limits.ts";
import { DELIVERY_STATES, renderEvent, SUBSCRIPTIONS, type DeliveryState } from "#domain/webhook.ts";
import type { Composition } from "./composition.ts";
import { openOwnSigning } from "./own-signing.ts";
import { CommandFailed, EXIT_CODES, plain, print, printItem, printItems, table, tell } from "./output.ts";
import { listOf, minute, readTime } from "./pages.ts";

/** The endpoints of webhooks: where an account's events are sent. */
export function addWebhooks(program: Command, composition: Composition): void {
  const webhooks = program
    .command("webhooks")
    .description("send an account's events to your endpoints, and see what became of them")
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey webhooks create https://example.com/webhooks --account acme\n  latchkey webhooks deliveries we_0VrJ… --state failed",
    );
  addCreate(webhooks, composition);
  addLists(webhooks, composition);
  addRotate(webhooks, composition);
  addSwitches(webhooks, composition);
  addResend(webhooks, composition);
}

interface CreateOptions {
  account: string;
  events: readonly string[];
  description: string;
  json?: boolean;
}

function addCreate(webhooks: Command, composition: Composition): void {
  webhooks
    .command("create")
    .description("create an endpoint; its signing secret is shown once")
    .argument("<url>", "where events are posted: https://…")
    .requiredOption("--account <name>", "the account's name in its document")
    .option("--events <types>", "separated by commas: types, or all of a subject such as run.*", readEvents, [
      "*",
    ])
    .option("--description <text>", "for people", "")
    .option("--json", 'print one line {"id", "secret"}')
    .addHelpText(
      "after",
      `\nEvents: ${SUBSCRIPTIONS.join(", ")}\n\nExample:\n  latchkey webhooks create https://example.com/webhooks --account acme --events run.completed,run.failed`,
    )
    .action(async (url: string, options: CreateOptions) => {
      const { createWebhookEndpoint } = await import("#actions/webhooks/manage-endpoints.ts");
      const signing = openOwnSigning(composition);
      const made = await composition.withDatabase(
        async (db) =>
          await createWebhookEndpoint(
            { db, vault: await composition.openSealer(db), signing },
            { ...options, url },
          ),
      );
      if (options.json) return print(JSON.stringify(made));
      tell(
        `Webhook endpoint ${made.id} of account ${options.account}. Its signing secret is shown only once; keep it where you keep secrets:`,
      );
      print(made.secret);
    });
}

function readEvents(text: string): readonly string[] {
  return text.split(",").map((event) => event.trim());
}

function addLists(webhooks: Command, composition: Composition): void {
  webhooks
    .command("list")
    .description("list endpoints, without their secrets")
    .option("--account <name>", "only those of one account")
    .option("--json", "print the list as JSON")
    .addHelpText("after", "\nExample:\n  latchkey webhooks list --account acme")
    .action(async (options: { account?: string; json?: boolean }) => {
      const { listWebhookEndpoints } = await import("#db/webhooks/webhook-endpoints.ts");
      const rows = await listOf(composition, options.account, listWebhookEndpoints);
      if (options.json === true) return printItems(rows);
      if (rows.length === 0)
        return print("There are no webhook endpoints yet: latchkey webhooks create --help.");
      print(endpointTable(rows));
    });
  addShow(webhooks, composition);
  webhooks
    .command("deliveries")
    .description("list the deliveries to an endpoint of the last 30 days, newest first")
    .argument("<id>", "the endpoint's id (we_…)")
    .addOption(new Option("--state <state>", "only these").choices([...DELIVERY_STATES]))
    .option("--limit <number>", "how many (default: 50)", readLimit)
    .option("--json", "print the list as JSON")
    .addHelpText("after", "\nExample:\n  latchkey webhooks deliveries we_0VrJ… --state failed")
    .action(async (id: string, options: DeliveriesOptions) => await deliveries(composition, id, options));
}

interface DeliveriesOptions {
  state?: DeliveryState;
  limit?: number;
  json?: boolean;
}

async function deliveries(composition: Composition, id: string, options: DeliveriesOptions): Promise<void> {
  const [{ listDeliveries }, { requireEndpoint }] = await Promise.all([
    import("#db/webhooks/webhook-deliveries.ts"),
    import("#actions/webhooks/manage-endpoints.ts"),
  ]);
  const page = {
    state: options.state ?? null,
    afterEventId: null,
    limit: options.limit ?? limits.pageItems,
  };
  const rows = await composition.withDatabase(async (db) => {
    await requireEndpoint(db, id);
    return await listDeliveries(db, id, page);
  });
  if (options.json === true) return printItems(rows);
  if (rows.length === 0) return print("There are no such deliveries.");
  print(
    table(
      ["EVENT", "TYPE", "SUBJECT", "TIME", "STATE", "ATTEMPTS", "LAST ANSWER"],
      rows.map((row) => [
        row.eventId,
        row.type,
        row.subjectId,
        minute(row.occurredAt),
        row.state,
        String(row.attempts),
        lastAnswer(row),
      ]),
    ),
  );
}

function lastAnswer({ lastStatus, lastFailure, lastDurationMs }: ListedDelivery): string {
  if (lastStatus !== null) return `${lastStatus} in ${lastDurationMs} ms`;
  return lastFailure === null ? "" : plain(lastFailure);
}

function readLimit(text: string): number {
  if (!/^\d{1,3}$/.test(text) || Number(text) < 1 || Number(text) > limits.pageItemsMax)
    throw new InvalidArgumentError(`It must be a number from 1 to ${limits.pageItemsMax}.`);
  return Number(text);
}

const endpointTable = (rows: readonly WebhookEndpoint[]): string =>
  table(
    ["ID", "ACCOUNT", "URL", "EVENTS", "STATE", "CREATED"],
    rows.map((row) => [
      row.id,
      row.account,
      plain(row.url),
      row.events.join(","),
      names[endpointState(row)],
      minute(row.createdAt),
    ]),
  );

function addShow(webhooks: Command, composition: Composition): void {
  webhooks
    .command("show")
    .description("show an endpoint, without its secret")
    .argument("<id>", "the endpoint's id (we_…)")
    .option("--json", "print it as JSON")
    .addHelpText("after", "\nExample:\n  latchkey webhooks show we_0VrJ…")
    .action(
      async (id: string, options: { json?: boolean }) =>
        await showEndpoint(composition, id, options.json === true),
    );
  webhooks
    .command("delivery")
    .description("show one delivery: its content, and each attempt with its answer")
    .argument("<id>", "the endpoint's id (we_…)")
    .argument("<event>", "the event's id (msg_…)")
    .option("--json", "print it as JSON")
    .addHelpText("after", "\nExample:\n  latchkey webhooks delivery we_0VrJ… msg_019f…")
    .action(
      async (id: string, eventId: string, options: { json?: boolean }) =>
        await showDelivery(composition, id, eventId, options.json === true),
    );
}

async function showEndpoint(composition: Composition, id: string, asJson: boolean): Promise<void> {
  const { requireEndpoint } = await import("#actions/webhooks/manage-endpoints.ts");
  const { accountId: _accountId, ...endpoint } = await composition.withDatabase(
    async (db) => await requireEndpoint(db, id),
  );
  if (asJson) return printItem(endpoint);
  print(endpointTable([endpoint]));
  if (endpoint.description !== "") print(`\n${plain(endpoint.description)}`);
  if (endpoint.failingSince !== null)
    print(`\nEvery attempt has failed since ${minute(endpoint.failingSince)}.`);
  if (endpoint.previousSecretEndsAt !== null)
    print(`\nThe previous secret signs, too, until ${minute(endpoint.previousSecretEndsAt)}.`);
}

async function showDelivery(
  composition: Composition,
  id: string,
  eventId: string,
  asJson: boolean,
): Promise<void> {
  const { findDelivery } = await import("#db/webhooks/webhook-deliveries.ts");
  const found = await composition.withDatabase(async (db) => await findDelivery(db, id, eventId));
  if (found === undefined)
    throw new CommandFailed(
      `The webhook endpoint ${id} has no delivery of the event ${eventId}. \`latchkey webhooks deliveries\` shows the events.`,
    );
  const { event, attempts } = found;
  if (asJson) return printItem({ eventId: event.id, body: renderEvent(event), attempts });
  print(`${event.id}  ${event.type}\n\n${renderEvent(event)}\n`);
  if (attempts.length === 0) return print("There was no attempt yet.");
  print(
    table(
      ["ATTEMPT", "TIME", "MS", "STATUS", "ANSWER"],
      attempts.map((attempt) => [
        String(attempt.number),
        attempt.beganAt.toISOString(),
        String(attempt.durationMs),
        attempt.status === null ? "none" : String(attempt.status),
        plain(attempt.failure ?? attempt.answer),
      ]),
    ),
  );
}

const OVERLAP_MS_DEFAULT = 86_400_000;

function addRotate(webhooks: Command, composition: Composition): void {
  webhooks
    .command("rotate")
    .description("replace an endpoint's signing secret; deliveries have both signatures for an overlap")
    .argument("<id>", "the endpoint's id (we_…)")
    .option(
      "--overlap <duration>",
      "how long the old secret signs, too (default: 24h; 0: no more)",
      readOverlap,
    )
    .option("--json", 'print one line {"id", "secret", "previousSecretEndsAt"}')
    .addHelpText("after", "\nExample:\n  latchkey webhooks rotate we_0VrJ… --overlap 2h")
    .action(async (id: string, options: { overlap?: number; json?: boolean }) => {
      const { rotateWebhookSecret } = await import("#actions/webhooks/manage-endpoints.ts");
      const signing = openOwnSigning(composition);
      const overlapMs = options.overlap ?? OVERLAP_MS_DEFAULT;
      const made = await composition.withDatabase(
        async (db) =>
          await rotateWebhookSecret(
            { db, vault: await composition.openSealer(db), signing },
            { id, overlapMs },
          ),
      );
      if (options.json) return print(JSON.stringify(made));
      tell(
        `The new signing secret of ${id}${made.previousSecretEndsAt === null ? "" : `; the old one signs, too, until ${made.previousSecretEndsAt.toISOString()}`}. ` +
          "It is shown only once; keep it where you keep secrets:",
      );
      print(made.secret);
    });
}

function readOverlap(text: string): number {
  const overlapMs = parseDuration(text);
  if (overlapMs === undefined || overlapMs > limits.webhookOverlapMsMax)
    throw new InvalidArgumentError("It must be 0 or a duration such as 30m or 24h, at most 30d.");
  return overlapMs;
}

function addSwitches(webhooks: Command, composition: Composition): void {
  const add = (
    name: "disable" | "enable" | "delete",
    description: string,
    done: (id: string) => string,
  ): Command =>
    webhooks
      .command(name)
      .description(description)
      .argument("<id>", "the endpoint's id (we_…)")
      .addHelpText("after", `\nExample:\n  latchkey webhooks ${name} we_0VrJ…`)
      .action(async (id: string) => {
        const actions = await import("#actions/webhooks/manage-endpoints.ts");
        const act = {
          disable: actions.disableWebhook,
          enable: actions.enableWebhook,
          delete: actions.deleteWebhook,
        }[name];
        const signing = openOwnSigning(composition);
        await composition.withDatabase(async (db) => await act({ db, signing }, id));
        print(done(id));
      });
  add(
    "disable",
    "send no events to an endpoint; new ones are not kept for it",
    (id) => `Disabled ${id}. What is not yet delivered waits until it is enabled.`,
  );
  add("enable", "send events to a disabled endpoint again", (id) => `Enabled ${id}.`);
  add("delete", "delete an endpoint with its secret and its delivery log", (id) => `Deleted ${id}.`);
}

function addResend(webhooks: Command, composition: Composition): void {
  webhooks
    .command("resend")
    .description("send an event to an endpoint again, or all that failed since a time")
    .argument("<id>", "the endpoint's id (we_…)")
    .argument("[event]", "the event's id (msg_…)")
    .option("--failed-since <time>", "all events whose delivery was given up since this time", readTime)
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey webhooks resend we_0VrJ… msg_019f…\n  latchkey webhooks resend we_0VrJ… --failed-since 2026-11-01",
    )
    .action(async (id: string, eventId: string | undefined, options: { failedSince?: string }) => {
      const { failedSince } = options;
      if ((eventId === undefined) === (failedSince === undefined))
        throw new CommandFailed("Give either an event's id or --failed-since.", EXIT_CODES.usage);
      const { resendWebhooks } = await import("#actions/webhooks/resend.ts");
      const what = eventId === undefined ? { failedSince: failedSince ?? "" } : { eventId };
      const signing = openOwnSigning(composition);
      const total = await composition.withDatabase(
        async (db) => await resendWebhooks({ db, signing }, id, what),
      );
      print(total === 1 ? "1 event will be sent again." : `${total} events will be sent again.`);
    });
  webhooks
    .command("ping")
    .description("send a test event to an endpoint")
    .argument("<id>", "the endpoint's id (we_…)")
    .addHelpText("after", "\nExample:\n  latchkey webhooks ping we_0VrJ…")
    .action(async (id: string) => {
      const { pingWebhook } = await import("#actions/webhooks/resend.ts");
      const signing = openOwnSigning(composition);
      const eventId = await composition.withDatabase(async (db) => await pingWebhook({ db, signing }, id));
      print(`Ping ${eventId} will be sent. Its attempts: latchkey webhooks delivery ${id} ${eventId}`);
    });
}

import { InvalidArgumentError, Option, type Command } from "commander";
import type { ListedDelivery } from "#db/webhooks/webhook-deliveries.ts";
import type { WebhookEndpoint } from "#db/webhooks/webhook-endpoints.ts";
import { ENDPOINT_STATE_NAMES as names, endpointState } from "#domain/labels/webhooks.ts";
import { limits } from "#domain/limits.ts";
import { DELIVERY_STATES, type DeliveryState } from "#domain/webhook.ts";
import type { Composition } from "./composition.ts";
import { plain, print, printItem, printItems, table } from "./output.ts";
import { minute } from "./pages.ts";
import { onWebhooks } from "./webhook-work.ts";

/** `list`, `show`, `deliveries` and `delivery`. */
export function addLists(webhooks: Command, composition: Composition): void {
  webhooks
    .command("list")
    .description("list endpoints, without their secrets")
    .option("--account <name>", "only those of one account")
    .option("--json", "print the list as JSON")
    .addHelpText("after", "\nExample:\n  latchkey webhooks list --account acme")
    .action(async (options: { account?: string; json?: boolean }) => {
      const rows = await onWebhooks(
        composition,
        async (webhooksAt) => await webhooksAt.list(options.account),
      );
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
  const page = { state: options.state ?? null, limit: options.limit ?? limits.pageItems };
  const rows = await onWebhooks(composition, async (webhooksAt) => await webhooksAt.deliveries(id, page));
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
      row.account ?? "operators",
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
  const endpoint = await onWebhooks(composition, async (webhooksAt) => await webhooksAt.read(id));
  if (asJson) return printItem(endpoint);
  print(endpointTable([endpoint]));
  if (endpoint.description !== "") print(`\n${plain(endpoint.description)}`);
  if (endpoint.isFromDocument) print("\nThe account's document has it.");
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
  const found = await onWebhooks(composition, async (webhooksAt) => await webhooksAt.delivery(id, eventId));
  const { body, attempts } = found;
  if (asJson) return printItem(found);
  const type = body === null ? "" : (JSON.parse(body) as { readonly type: string }).type;
  print(`${found.eventId}  ${type}\n\n${body ?? "It can't be rendered."}\n`);
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

import { createHmac } from "node:crypto";
import { InvalidArgumentError, type Command } from "commander";
import type { ServiceAnswer, ServiceClient } from "#outbound/service-client.ts";
import { subscriptionsProblem } from "#domain/webhook.ts";
import { TRIGGERED_TYPES } from "#domain/webhook-example.ts";
import { must } from "#lib/assert.ts";
import { readServerEvents, type ServerEvent } from "#lib/server-events.ts";
import type { Hmac } from "#lib/hmac.ts";
import { openWebhookSigner, webhookHeaders } from "#lib/webhook-signature.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, plain, print, tell } from "./output.ts";
import { stopSignal } from "./stop-signal.ts";
import { onWebhooks } from "./webhook-work.ts";

/** `listen` and `trigger`: for those who write a receiver. */
export function addTrials(webhooks: Command, composition: Composition): void {
  webhooks
    .command("listen")
    .description("forward an account's events to a program on this machine, signed, with nothing public")
    .requiredOption(
      "--forward <address>",
      "where events are posted, such as http://localhost:3000/hooks",
      readUrl,
    )
    .option("--events <types>", "only these, separated by commas: types, or all of a subject", readEvents)
    .option("--once <type>", "stop after the first event of this type")
    .option("--json", "print one line of JSON for each event")
    .addHelpText(
      "after",
      "\nLATCHKEY_API_KEY names the account: a key with the scope `events`. The signing secret is printed first, and stays\n" +
        "the same for the same key.\n" +
        "\nExample:\n  latchkey webhooks listen --forward http://localhost:3000/hooks",
    )
    .action(async (options: ListenOptions) => await listen(composition, options));
  webhooks
    .command("trigger")
    .description("send a made-up event to the endpoints of an account, and to those who listen")
    .argument("<event>", "its type, such as run.completed")
    .requiredOption("--account <name>", "the account's name in its document")
    .addHelpText(
      "after",
      `\nEvents: ${TRIGGERED_TYPES.join(", ")}\n\nExample:\n  latchkey webhooks trigger run.completed --account acme`,
    )
    .action(async (type: string, { account }: { account: string }) => {
      const eventId = await onWebhooks(
        composition,
        async (webhooksAt) => await webhooksAt.trigger(account, type),
      );
      print(`Triggered ${eventId}. What it is about does not exist.`);
    });
}

interface ListenOptions {
  forward: string;
  events?: readonly string[];
  once?: string;
  json?: boolean;
}

function readUrl(text: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new InvalidArgumentError("It must be a URL such as http://localhost:3000/hooks.");
  return text;
}

function readEvents(text: string): readonly string[] {
  const events = text.split(",").map((event) => event.trim());
  const problem = subscriptionsProblem(events);
  if (problem !== null) throw new InvalidArgumentError(problem);
  return events;
}

/** The same for the same key, so that the receiver keeps it. Nobody finds the key by it. */
const secretOf = (apiKey: string): string =>
  `whsec_${createHmac("sha256", apiKey).update("latchkey webhooks listen").digest("base64")}`;

async function listen(composition: Composition, options: ListenOptions): Promise<void> {
  const client = await composition.openApiClient();
  const secret = secretOf(must(composition.config().apiKey, "the client has checked it").reveal());
  const interrupt = stopSignal(["SIGINT", "SIGTERM"]);
  tell(`Forwarding the events of ${client.url} to ${options.forward}, signed with:\n${secret}`);
  try {
    await Promise.race([
      follow(client, openWebhookSigner(secret), options, interrupt.signal),
      interrupt.come,
    ]);
  } finally {
    await client.close();
  }
}

const RECONNECT_MS = 2_000;

/** Until the event that `once` names, or until the process ends: a stream that ends is opened again, and continues where it was. */
async function follow(
  client: ServiceClient,
  sign: Hmac,
  options: ListenOptions,
  stopped: AbortSignal,
): Promise<void> {
  let lastId: string | null = null;
  let isReached = false;
  while (!stopped.aborted) {
    try {
      const answer = await open(client, lastId);
      isReached = true;
      for await (const event of readServerEvents(answer.bytes)) {
        lastId = event.id;
        if (!isWanted(event.type, options.events)) continue;
        await pass(event, sign, options);
        if (event.type === options.once) return;
      }
    } catch (error) {
      // What is wrong from the beginning stays wrong.
      if (stopped.aborted || error instanceof CommandFailed || !isReached) throw error;
      tell("The connection was lost. Connecting again…");
    }
    await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS));
  }
}

async function open(client: ServiceClient, lastId: string | null): Promise<ServiceAnswer> {
  const headers = {
    accept: "text/event-stream",
    ...(lastId === null ? {} : { "last-event-id": lastId }),
  };
  const answer = await client.send({ method: "GET", path: "/events", headers });
  if (answer.status === 200) return answer;
  const chunks = await Array.fromAsync(answer.bytes);
  const text = Buffer.concat(chunks).toString("utf8");
  throw new CommandFailed(
    messageOf(text) ?? `${client.url} answered ${answer.status}. Check LATCHKEY_URL, or --url.`,
  );
}

function messageOf(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { readonly error?: { readonly message?: string } }).error?.message;
  } catch {
    return undefined;
  }
}

const isWanted = (type: string, events: readonly string[] | undefined): boolean =>
  events === undefined ||
  events.some((each) => each === "*" || each === type || each === `${type.split(".")[0]}.*`);

async function pass(event: ServerEvent, sign: Hmac, { forward: to, json }: ListenOptions): Promise<void> {
  const { forward } = await import("#outbound/forward.ts");
  const beganAtMs = performance.now();
  const headers = webhookHeaders({ id: event.id, atMs: Date.now(), body: event.data }, [sign]);
  const result = await forward(to, headers, event.data);
  const durationMs = Math.round(performance.now() - beganAtMs);
  const [status, failure] = typeof result === "number" ? [result, null] : [null, result];
  if (json === true)
    return print(
      JSON.stringify({ type: event.type, event_id: event.id, status, failure, duration_ms: durationMs }),
    );
  print(plain(`${event.type}  ${event.id}  ${status ?? failure}  ${durationMs} ms`));
}

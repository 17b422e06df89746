import { InvalidArgumentError, Option, type Command } from "commander";
import type { EndpointChange } from "#actions/webhooks/manage-endpoints.ts";
import { parseDuration } from "#domain/duration.ts";
import { limits } from "#domain/limits.ts";
import { OPERATOR_SUBSCRIPTIONS, SUBSCRIPTIONS } from "#domain/webhook.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, EXIT_CODES, print, tell } from "./output.ts";
import { readTime } from "./pages.ts";
import { addLists } from "./webhook-lists.ts";
import { addTrials } from "./webhook-trials.ts";
import { onWebhooks } from "./webhook-work.ts";

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
  addUpdate(webhooks, composition);
  addRotate(webhooks, composition);
  addSwitches(webhooks, composition);
  addResend(webhooks, composition);
  addTrials(webhooks, composition);
}

interface UpdateOptions extends Pick<EndpointChange, "events" | "description"> {
  /** Not `--url`, which says at which service a command works. */
  readonly newUrl?: string;
}

interface CreateOptions {
  account?: string;
  operators?: boolean;
  events: readonly string[];
  description: string;
  json?: boolean;
}

function addCreate(webhooks: Command, composition: Composition): void {
  webhooks
    .command("create")
    .description("create an endpoint; its signing secret is shown once")
    .argument("<url>", "where events are posted: https://…")
    .addOption(new Option("--account <name>", "the account's name in its document").conflicts("operators"))
    .option("--operators", "tell the operators what needs a person, in any account")
    .option("--events <types>", "separated by commas: types, or all of a subject such as run.*", readEvents, [
      "*",
    ])
    .option("--description <text>", "for people", "")
    .option("--json", 'print one line {"id", "secret"}')
    .addHelpText(
      "after",
      `\nEvents: ${SUBSCRIPTIONS.join(", ")}\nWith --operators: ${OPERATOR_SUBSCRIPTIONS.join(", ")}\n\nExamples:\n  latchkey webhooks create https://example.com/webhooks --account acme --events run.completed,run.failed\n  latchkey webhooks create https://example.com/operators --operators`,
    )
    .action(async (url: string, { operators, account, ...options }: CreateOptions) => {
      if (operators !== true && account === undefined)
        throw new CommandFailed("Name an account with --account, or use --operators.", EXIT_CODES.usage);
      const made = await onWebhooks(
        composition,
        async (webhooksAt) => await webhooksAt.create({ ...options, account: account ?? null, url }),
      );
      if (options.json) return print(JSON.stringify(made));
      tell(
        `Webhook endpoint ${made.id} of ${account === undefined ? "the operators" : `account ${account}`}. Its signing secret is shown only once; keep it where you keep secrets:`,
      );
      print(made.secret);
    });
}

function readEvents(text: string): readonly string[] {
  return text.split(",").map((event) => event.trim());
}

function addUpdate(webhooks: Command, composition: Composition): void {
  webhooks
    .command("update")
    .description("change what an endpoint gets, where it is, or its description")
    .argument("<id>", "the endpoint's id (we_…)")
    .option("--events <types>", "separated by commas: types, or all of a subject such as run.*", readEvents)
    .option("--new-url <url>", "where events are posted from now on, those that wait as well")
    .option("--description <text>", "for people")
    .addHelpText("after", "\nExample:\n  latchkey webhooks update we_0VrJ… --events 'run.*'")
    .action(async (id: string, { newUrl: url, ...others }: UpdateOptions) => {
      const change: EndpointChange = { ...others, ...(url !== undefined && { url }) };
      if (Object.keys(change).length === 0)
        throw new CommandFailed("Give --events, --new-url or --description.", EXIT_CODES.usage);
      await onWebhooks(composition, async (webhooksAt) => await webhooksAt.update(id, change));
      print(`Changed ${id}.`);
    });
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
      const overlapMs = options.overlap ?? OVERLAP_MS_DEFAULT;
      const made = await onWebhooks(
        composition,
        async (webhooksAt) => await webhooksAt.rotate(id, overlapMs),
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
        await onWebhooks(composition, async (webhooksAt) => await webhooksAt.change(id, name));
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
      const what = eventId === undefined ? { failedSince: failedSince ?? "" } : { eventId };
      const total = await onWebhooks(composition, async (webhooksAt) => await webhooksAt.resend(id, what));
      print(total === 1 ? "1 event will be sent again." : `${total} events will be sent again.`);
    });
  webhooks
    .command("ping")
    .description("send a test event to an endpoint")
    .argument("<id>", "the endpoint's id (we_…)")
    .addHelpText("after", "\nExample:\n  latchkey webhooks ping we_0VrJ…")
    .action(async (id: string) => {
      const eventId = await onWebhooks(composition, async (webhooksAt) => await webhooksAt.ping(id));
      print(`Ping ${eventId} will be sent. Its attempts: latchkey webhooks delivery ${id} ${eventId}`);
    });
}

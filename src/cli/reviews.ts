import { InvalidArgumentError, type Command } from "commander";
import type { DoubtfulWrite } from "#db/run-writes.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, print, table, tell } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";

/** What waits for a person. */
export function addReviews(program: Command, composition: Composition): void {
  const reviews = program
    .command("reviews")
    .description("what runs wait for: writes that may have happened")
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey reviews list\n  latchkey reviews write run_0VrJ… send_invoices 3 --happened",
    );
  reviews
    .command("list")
    .description("list what waits, oldest first")
    .option("--account <name>", "only those of one account")
    .option("--run <id>", "only those of one run")
    .option("--json", "print the list as JSON")
    .addHelpText("after", "\nExample:\n  latchkey reviews list --account acme")
    .action(async (options: ListOptions) => await list(composition, options));
  reviews
    .command("write")
    .description("say whether a write that may have happened did; with the last one its run goes on")
    .argument("<run>", "the run's id (run_…)")
    .argument("<node>", "the node's id")
    .argument("[record]", "the record's place, as `reviews list` shows it", readOrdinal, 0)
    .option("--happened", "the target has it: it is not sent again")
    .option("--not-happened", "the target does not have it: it is sent")
    .addHelpText("after", "\nExample:\n  latchkey reviews write run_0VrJ… send_invoices 3 --not-happened")
    .action(
      async (run: string, node: string, ordinal: number, options: DecideOptions) =>
        await decide(composition, { runId: run, nodeId: node, ordinal }, options),
    );
}

interface ListOptions {
  account?: string;
  run?: string;
  json?: boolean;
}

interface DecideOptions {
  happened?: boolean;
  notHappened?: boolean;
}

function readOrdinal(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("It must be a whole number, from 0.");
  return Number(text);
}

async function list(composition: Composition, options: ListOptions): Promise<void> {
  const writes = await composition.withDatabase(async (db) => {
    const [{ findAccountBySlug }, { listDoubtfulWrites }] = await Promise.all([
      import("#db/accounts.ts"),
      import("#db/run-writes.ts"),
    ]);
    const account = options.account === undefined ? null : await findAccountBySlug(db, options.account);
    if (account === undefined)
      throw new CommandFailed(`There is no account ${options.account}. Its document is applied first.`);
    return await listDoubtfulWrites(db, { accountId: account?.id ?? null, runId: options.run ?? null });
  });
  if (options.json === true) {
    print(JSON.stringify(writes.map(({ accountId: _accountId, ...write }) => write)));
    return;
  }
  if (writes.length === 0) tell("Nothing waits for you.");
  else print(table(["run", "account", "blueprint", "node", "record", "since", "why"], writes.map(row)));
}

function row(write: DoubtfulWrite): string[] {
  const { runId, account, blueprint, nodeId, ordinal, startedAt, detail } = write;
  return [runId, account, blueprint, nodeId, String(ordinal), startedAt.toISOString(), detail ?? ""];
}

async function decide(
  composition: Composition,
  write: { readonly runId: string; readonly nodeId: string; readonly ordinal: number },
  options: DecideOptions,
): Promise<void> {
  const happened = options.happened === true;
  if (happened === (options.notHappened === true))
    throw new CommandFailed("Say either --happened or --not-happened.");
  const isDecided = await composition.withDatabase(async (db) => {
    const [{ decideDoubtfulWrite }, { listDoubtfulWrites }] = await Promise.all([
      import("#actions/decide-write.ts"),
      import("#db/run-writes.ts"),
    ]);
    const waiting = await listDoubtfulWrites(db, { accountId: null, runId: write.runId });
    const found = waiting.find((each) => each.nodeId === write.nodeId && each.ordinal === write.ordinal);
    if (!found) return false;
    const services = { db, log: await composition.log(), audit: openOwnSigning(composition).audit };
    return await decideDoubtfulWrite(services, found, { happened, by: "cli" });
  });
  if (!isDecided)
    throw new CommandFailed(
      `No write of ${write.runId}, node ${write.nodeId}, record ${write.ordinal} waits for a decision. \`latchkey reviews list\` shows what does.`,
    );
  print(happened ? "It counts as done; it is not sent again." : "It will be sent.");
}

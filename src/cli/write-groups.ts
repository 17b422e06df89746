import type { Command } from "commander";
import type { DecidedGroup } from "#actions/reviews/decide-group.ts";
import type { DoubtfulGroup } from "#db/runs/run-writes.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, plain, print, printItems, table, tell } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";
import { listOf, minute } from "./pages.ts";
import { onRemote } from "./remote.ts";
import { listGroupsRemotely } from "./remote-reviews.ts";

/** Uncertain writes, grouped by node over all its runs. */
export function addWriteGroups(reviews: Command, composition: Composition): void {
  reviews
    .command("writes")
    .description("list uncertain writes, one line per node of a Blueprint")
    .option("--account <name>", "only those of one account")
    .option("--blueprint <key>", "only those of one Blueprint")
    .option("--json", "print the list as JSON")
    .addHelpText("after", "\nExample:\n  latchkey reviews writes --account acme")
    .action(async (options: GroupOptions) => await list(composition, options));
  reviews
    .command("decide")
    .description("decide whether a node's uncertain writes happened, in all its runs at once")
    .argument("<account>", "the account's name")
    .argument("<blueprint>", "the Blueprint's key")
    .argument("<node>", "the node's id")
    .option("--happened", "the target has them; they are not sent again")
    .option("--not-happened", "the target does not have them; they are sent again")
    .addHelpText("after", "\nExample:\n  latchkey reviews decide acme send-orders sent --happened")
    .action(
      async (account: string, blueprint: string, node: string, options: DecideOptions) =>
        await decide(composition, { account, blueprint, nodeId: node }, readDecision(options)),
    );
}

interface GroupOptions {
  account?: string;
  blueprint?: string;
  json?: boolean;
}

export interface DecideOptions {
  happened?: boolean;
  notHappened?: boolean;
}

/** Whether they happened. Throws CommandFailed without an answer, or with both. */
export function readDecision(options: DecideOptions): boolean {
  const happened = options.happened === true;
  if (happened === (options.notHappened === true))
    throw new CommandFailed("Give either --happened or --not-happened.");
  return happened;
}

async function readGroups(
  composition: Composition,
  { account, blueprint }: GroupOptions,
): Promise<readonly DoubtfulGroup[]> {
  if (composition.isRemote()) {
    const groups = await onRemote(composition, async (service) => await listGroupsRemotely(service, account));
    return groups.filter((group) => blueprint === undefined || group.blueprint === blueprint);
  }
  const { listDoubtfulGroups } = await import("#db/runs/run-writes.ts");
  return await listOf(
    composition,
    account,
    async (db, accountIds) => await listDoubtfulGroups(db, { accountIds, blueprint: blueprint ?? null }),
  );
}

async function list(composition: Composition, options: GroupOptions): Promise<void> {
  const groups = await readGroups(composition, options);
  if (options.json === true) {
    printItems(groups.map(({ nodeId, ...group }) => ({ ...group, node: nodeId })));
  } else if (groups.length === 0) tell("There are no uncertain writes.");
  else
    print(
      table(
        ["ACCOUNT", "BLUEPRINT", "NODE", "WRITES", "RUNS", "SINCE", "REASON", "SENT"],
        groups.map((group) => [
          group.account,
          group.blueprint,
          group.nodeId,
          String(group.writes),
          String(group.runs),
          minute(group.since),
          group.detail ?? "",
          plain(group.sent?.split("\n", 1)[0] ?? ""),
        ]),
      ),
    );
}

async function decide(composition: Composition, node: NodeName, happened: boolean): Promise<void> {
  const { account, blueprint, nodeId } = node;
  const { writes, runs, left } = composition.isRemote()
    ? await decideRemotely(composition, node, happened)
    : await decideHere(composition, node, happened);
  if (writes === 0 && left === 0)
    throw new CommandFailed(
      `No write of node ${nodeId} of ${account}/${blueprint} waits for a decision. \`latchkey reviews writes\` lists those that do.`,
    );
  const what = `${writes === 1 ? "One write" : `${writes} writes`} of ${runs === 1 ? "one run" : `${runs} runs`}`;
  print(
    happened
      ? `${what} count as done; they are not sent again.`
      : `${what} did not happen; they are sent when their runs continue.`,
  );
  if (left > 0)
    throw new CommandFailed(
      `${left === 1 ? "One write" : `${left} writes`} could not be decided: the run is active at this moment, or the log says why. Try again.`,
    );
}

interface NodeName {
  readonly account: string;
  readonly blueprint: string;
  readonly nodeId: string;
}

async function decideRemotely(
  composition: Composition,
  { account, blueprint, nodeId: node }: NodeName,
  happened: boolean,
): Promise<DecidedGroup> {
  const { decideWriteGroup } = await import("#contract/operator/writes.ts");
  const body = { account, blueprint, node, happened };
  return await onRemote(composition, async (service) => await service.call(decideWriteGroup, { body }));
}

async function decideHere(
  composition: Composition,
  { account, blueprint, nodeId }: NodeName,
  happened: boolean,
): Promise<DecidedGroup> {
  return await composition.withDatabase(async (db) => {
    const [{ requireAccount }, { decideDoubtfulGroup }] = await Promise.all([
      import("#actions/operator-error.ts"),
      import("#actions/reviews/decide-group.ts"),
    ]);
    const { id: accountId } = await requireAccount(db, account);
    const services = { db, log: await composition.log(), audit: openOwnSigning(composition).audit };
    return await decideDoubtfulGroup(services, { accountId, blueprint, nodeId }, { happened, by: "cli" });
  });
}

import { InvalidArgumentError, type Command } from "commander";
import type { Composition } from "./composition.ts";
import { CommandFailed, plain, print, printItems, table, tell } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";
import { listOf, minute } from "./pages.ts";
import { onRemote } from "./remote.ts";
import { listWaitingRemotely, type ShownReview, type ShownWrite } from "./remote-reviews.ts";
import { addRecordReviews } from "./review-records.ts";
import { addWriteGroups, readDecision, type DecideOptions } from "./write-groups.ts";

/** Reviews and writes that wait for a person. */
export function addReviews(program: Command, composition: Composition): void {
  const reviews = program
    .command("reviews")
    .description("decide what runs wait for: reviews of records, and uncertain writes")
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey reviews list\n  latchkey reviews approve rev_0VrJ… --exclude 3,7\n  latchkey reviews write run_0VrJ… send_invoices 3 --happened",
    );
  reviews
    .command("list")
    .description("list open reviews and uncertain writes, oldest first")
    .option("--account <name>", "only those of one account")
    .option("--run <id>", "only those of one run")
    .option("--json", "print the list as JSON")
    .addHelpText("after", "\nExample:\n  latchkey reviews list --account acme")
    .action(async (options: ListOptions) => await list(composition, options));
  addRecordReviews(reviews, composition);
  addWriteGroups(reviews, composition);
  reviews
    .command("write")
    .description("decide whether an uncertain write happened; after the last one the run continues")
    .argument("<run>", "the run's id (run_…)")
    .argument("<node>", "the node's id")
    .argument("[record]", "the record's ordinal, as `reviews list` shows it", readOrdinal, 0)
    .option("--happened", "the target has it; it is not sent again")
    .option("--not-happened", "the target does not have it; it is sent again")
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

function readOrdinal(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("It must be a whole number, from 0.");
  return Number(text);
}

async function readWaiting(
  composition: Composition,
  options: ListOptions,
): Promise<{ readonly reviews: readonly ShownReview[]; readonly writes: readonly ShownWrite[] }> {
  if (composition.isRemote())
    return await onRemote(composition, async (service) => await listWaitingRemotely(service, options));
  const [{ listDoubtfulWrites }, { listOpenReviews }] = await Promise.all([
    import("#db/runs/run-writes.ts"),
    import("#db/runs/reviews.ts"),
  ]);
  return await listOf(composition, options.account, async (db, accountIds) => {
    const filter = { accountIds, runId: options.run ?? null };
    const writes = (await listDoubtfulWrites(db, filter)).map(({ accountId: _accountId, ...write }) => write);
    return { reviews: await listOpenReviews(db, filter), writes };
  });
}

async function list(composition: Composition, options: ListOptions): Promise<void> {
  const { reviews, writes } = await readWaiting(composition, options);
  const waiting = [...reviews.map(ofReview), ...writes.map(ofWrite)].sort(
    (a, b) => a.since.getTime() - b.since.getTime(),
  );
  if (options.json === true) printItems(waiting.map(({ shown }) => shown));
  else if (waiting.length === 0) tell("Nothing needs a decision.");
  else
    print(
      table(
        ["KIND", "ID", "ACCOUNT", "BLUEPRINT", "NODE", "RECORD", "SINCE", "UNTIL", "DETAIL"],
        waiting.map(({ row }) => row),
      ),
    );
}

/** Both kinds in one list, each with its `--json` form and its row in the table. */
interface Waiting {
  readonly since: Date;
  readonly shown: object;
  readonly row: readonly string[];
}

function ofReview(review: ShownReview): Waiting {
  const { id, account, runId, blueprint, nodeId, title, editable, recordsTotal, recordsValid } = review;
  const { createdAt: since, expiresAt, onTimeout } = review;
  const counts = `${recordsTotal} records, ${recordsTotal - recordsValid} invalid`;
  const until = expiresAt === null ? "" : minute(expiresAt);
  return {
    since,
    shown: {
      kind: "records",
      id,
      account,
      runId,
      blueprint,
      nodeId,
      title,
      editable,
      recordsTotal,
      recordsValid,
      startedAt: since,
      expiresAt,
      onTimeout,
    },
    row: ["records", id, account, blueprint, nodeId, "", minute(since), until, `${plain(title)} (${counts})`],
  };
}

function ofWrite(write: ShownWrite): Waiting {
  const { runId, account, blueprint, nodeId, ordinal, startedAt: since, detail, runEnded } = write;
  const row = [
    "write",
    runId,
    account,
    blueprint,
    nodeId,
    String(ordinal),
    minute(since),
    "",
    [detail ?? "", ...(runEnded === null ? [] : [`its run is ${runEnded}`])].join("; "),
  ];
  return { since, shown: { kind: "write", ...write }, row };
}

async function decide(composition: Composition, write: WriteName, options: DecideOptions): Promise<void> {
  const happened = readDecision(options);
  const decided = composition.isRemote()
    ? await decideRemotely(composition, write, happened)
    : await decideHere(composition, write, happened);
  if (decided === null)
    throw new CommandFailed(
      `No write of ${write.runId}, node ${write.nodeId}, record ${write.ordinal} waits for a decision. \`latchkey reviews list\` lists those that do.`,
    );
  if (decided.runEnded !== null)
    print(
      `Recorded that it ${happened ? "happened" : "did not happen"}; its run has already ended (${decided.runEnded}).`,
    );
  else print(happened ? "It counts as done; it is not sent again." : "It will be sent.");
}

interface WriteName {
  readonly runId: string;
  readonly nodeId: string;
  readonly ordinal: number;
}

const isNamed = (write: WriteName) => (each: ShownWrite) =>
  each.nodeId === write.nodeId && each.ordinal === write.ordinal;

/** Null: it does not wait for a decision. */
async function decideRemotely(
  composition: Composition,
  write: WriteName,
  happened: boolean,
): Promise<ShownWrite | null> {
  const { decideWrite } = await import("#contract/operator/writes.ts");
  return await onRemote(composition, async (service) => {
    const { writes } = await listWaitingRemotely(service, { run: write.runId });
    const found = writes.find(isNamed(write));
    if (!found) return null;
    const params = { runId: write.runId, node: write.nodeId, record: String(write.ordinal) };
    await service.call(decideWrite, { params, body: { happened } });
    return found;
  });
}

async function decideHere(
  composition: Composition,
  write: WriteName,
  happened: boolean,
): Promise<ShownWrite | null> {
  return await composition.withDatabase(async (db) => {
    const [{ decideDoubtfulWrite }, { listDoubtfulWrites }] = await Promise.all([
      import("#actions/reviews/decide-write.ts"),
      import("#db/runs/run-writes.ts"),
    ]);
    const waiting = await listDoubtfulWrites(db, { accountIds: null, runId: write.runId });
    const found = waiting.find(isNamed(write));
    if (!found) return null;
    const services = { db, log: await composition.log(), audit: openOwnSigning(composition).audit };
    return (await decideDoubtfulWrite(services, found, { happened, by: "cli" })) ? found : null;
  });
}

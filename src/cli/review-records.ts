import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { InvalidArgumentError, type Command } from "commander";
import type { ReviewDecision } from "#actions/reviews/decide-review.ts";
import type { ReviewedRecord } from "#actions/reviews/read-review.ts";
import { BlobMissing } from "#blobs/store.ts";
import type { Json } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { onTimeoutName, REVIEW_STATE_NAMES as names } from "#domain/labels/states.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, EXIT_CODES, paint, plain, print, table } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";
import { onRemote } from "./remote.ts";
import {
  decideReviewRemotely,
  readRecordsRemotely,
  readReviewRemotely,
  type ShownReview,
} from "./remote-reviews.ts";
import { readEditsFile, refusal } from "./review-file.ts";

const SHOWN_RECORDS = 20;
const SHOWN_FIELDS = 8;
const CELL_CHARACTERS = 40;
const BY_DEFAULT = "cli";

/** Reviews of records, which nodes of type `review` request. */
export function addRecordReviews(reviews: Command, composition: Composition): void {
  reviews
    .command("show")
    .description("show a review and its first records")
    .argument("<id>", "its id (rev_…), as `reviews list` shows it")
    .option("--json", "print all records instead, one per line, with `ordinal`, `data`, `errors`, `isValid`")
    .addHelpText("after", "\nExample:\n  latchkey reviews show rev_0VrJ… --json > records.ndjson")
    .action(async (id: string, options: { json?: boolean }) => await show(composition, id, options));
  reviews
    .command("approve")
    .description("let a run continue, with the records as they are or with your changes")
    .argument("<id>", "the review's id (rev_…)")
    .option("--edits <file>", 'new data of records, one per line: {"ordinal": 3, "data": {…}}')
    .option("--exclude <records>", "records to exclude, by ordinal: 3,7", readOrdinals)
    .option("--by <name>", "who decides", readName, BY_DEFAULT)
    .option("--reason <text>", "why", readReason)
    .addHelpText(
      "after",
      "\nExample:\n  latchkey reviews approve rev_0VrJ… --edits fixed.ndjson --exclude 3,7 --by ana",
    )
    .action(async (id: string, options: ApproveOptions) => {
      const edits = options.edits === undefined ? [] : await readEditsFile(options.edits);
      const exclusions = (options.exclude ?? []).map((ordinal) => ({ at: "--exclude", ordinal }));
      await decide(composition, id, { verdict: "approve", changes: { edits, exclusions } }, options);
    });
  reviews
    .command("reject")
    .description("reject the records and cancel the run")
    .argument("<id>", "the review's id (rev_…)")
    .option("--by <name>", "who decides", readName, BY_DEFAULT)
    .requiredOption("--reason <text>", "why", readReason)
    .addHelpText(
      "after",
      "\nExample:\n  latchkey reviews reject rev_0VrJ… --reason 'the totals are in cents'",
    )
    .action(
      async (id: string, options: DecideOptions) =>
        await decide(composition, id, { verdict: "reject" }, options),
    );
}

interface DecideOptions {
  by: string;
  reason?: string | undefined;
}

interface ApproveOptions extends DecideOptions {
  edits?: string;
  exclude?: readonly number[];
}

function readOrdinals(text: string): readonly number[] {
  if (!/^\d{1,9}(,\d{1,9})*$/.test(text))
    throw new InvalidArgumentError("It must be whole numbers from 0, separated by commas: 3,7");
  return text.split(",").map(Number);
}

const readName = (text: string): string => readText(text, limits.nameCharactersMax);
const readReason = (text: string): string => readText(text, limits.reviewReasonCharactersMax);

function readText(text: string, charactersMax: number): string {
  const characters = Array.from(text.trim()).length;
  if (characters === 0 || characters > charactersMax)
    throw new InvalidArgumentError(`It must have 1 to ${charactersMax} characters.`);
  return text.trim();
}

const unknownReview = (id: string): CommandFailed =>
  new CommandFailed(`There is no review ${id}. \`latchkey reviews list\` lists the open ones.`);

async function show(composition: Composition, id: string, { json }: { json?: boolean }): Promise<void> {
  if (composition.isRemote())
    return await onRemote(composition, async (service) => {
      const records = readRecordsRemotely(service, id);
      if (json === true) await printLines(records);
      else await printReview(await readReviewRemotely(service, id), records);
    });
  const { readReview, readReviewRecords } = await import("#actions/reviews/read-review.ts");
  const review = await composition.withDatabase(async (db) => await readReview(db, id));
  if (!review) throw unknownReview(id);
  const records = readReviewRecords(await composition.openStore(), review);
  try {
    if (json === true) await printLines(records);
    else await printReview(review, records);
  } catch (error) {
    if (!(error instanceof BlobMissing)) throw error;
    throw new CommandFailed(
      `The records of ${id} are not in the object store. Run this where the service's data is, with its settings.`,
    );
  }
}

async function printLines(records: AsyncIterable<ReviewedRecord>): Promise<void> {
  const lines = async function* (): AsyncIterable<string> {
    for await (const record of records) yield `${JSON.stringify(record)}\n`;
  };
  try {
    await pipeline(Readable.from(lines()), process.stdout, { end: false });
  } catch (error) {
    // The reader has closed the pipe, as `head` does.
    if ((error as NodeJS.ErrnoException).code !== "EPIPE") throw error;
  }
}

async function printReview(review: ShownReview, records: AsyncIterable<ReviewedRecord>): Promise<void> {
  const { runId, nodeId, recordsTotal, recordsValid } = review;
  print(paint("bold", plain(review.title)));
  if (review.instructions !== null) print(`\n${review.instructions.split("\n").map(plain).join("\n")}`);
  print(`\n${review.account}, ${review.blueprint}, ${runId}, node ${nodeId}: ${stateOf(review)}`);
  const editing = review.editable ? "they can be edited or excluded" : "they can be excluded, not edited";
  print(`${recordsTotal} records, ${recordsTotal - recordsValid} invalid; ${editing}\n`);
  const first: ReviewedRecord[] = [];
  for await (const record of records) {
    first.push(record);
    if (first.length >= SHOWN_RECORDS) break;
  }
  if (first.length > 0) print(recordTable(first));
  if (recordsTotal > first.length) print(`… and ${recordsTotal - first.length} more; --json prints all.`);
}

/** Its state: how it was decided, or how long it waits. */
function stateOf(review: ShownReview): string {
  const { status, expiresAt, decidedBy, decidedAt, reason, edited, excluded } = review;
  if (status === "open")
    return expiresAt === null
      ? names.open
      : `${names.open} until ${expiresAt.toISOString()}; then: ${onTimeoutName(review.onTimeout)}`;
  if (status === "closed") return names.closed;
  if (status === "timed_out") return `${names.timed_out} at ${expiresAt?.toISOString() ?? ""}`;
  const changes = edited + excluded > 0 ? ` (${edited} edited, ${excluded} excluded)` : "";
  const why = reason === null ? "" : `: ${plain(reason)}`;
  return `${names[status]}${changes} by ${plain(decidedBy ?? "")} at ${decidedAt?.toISOString() ?? ""}${why}`;
}

/** Records as rows, for people. */
export function recordTable(records: readonly ReviewedRecord[]): string {
  const fields = [...new Set(records.flatMap(({ data }) => Object.keys(data)))].slice(0, SHOWN_FIELDS);
  const rows = records.map(({ ordinal, data, errors, isValid }) => [
    String(ordinal),
    isValid ? "yes" : "no",
    ...fields.map((field) => cell(Object.hasOwn(data, field) ? data[field] : undefined)),
    errors.map(({ field, message }) => plain(field === null ? message : `${field}: ${message}`)).join("; "),
  ]);
  return table(["record", "valid", ...fields.map(plain), "errors"], rows);
}

function cell(value: Json | undefined): string {
  if (value === undefined) return "";
  const characters = Array.from(plain(typeof value === "string" ? value : JSON.stringify(value)));
  return characters.length > CELL_CHARACTERS
    ? `${characters.slice(0, CELL_CHARACTERS - 1).join("")}…`
    : characters.join("");
}

async function decide(
  composition: Composition,
  id: string,
  decision: ReviewDecision,
  { by, reason }: DecideOptions,
): Promise<void> {
  const { runId, edited, excluded } = composition.isRemote()
    ? await decideRemotely(composition, id, decision, { by, reason })
    : await decideHere(composition, id, decision, { by, reason });
  if (decision.verdict === "reject") print(`Rejected; ${runId} is cancelled.`);
  else print(`Approved, with ${edited} records edited and ${excluded} excluded; ${runId} continues.`);
}

async function decideRemotely(
  composition: Composition,
  id: string,
  decision: ReviewDecision,
  { by, reason }: DecideOptions,
): Promise<ShownReview> {
  if (by !== BY_DEFAULT)
    throw new CommandFailed("--by can't be used here: the token's name is recorded.", EXIT_CODES.usage);
  return await onRemote(composition, async (service) => {
    if (decision.verdict === "reject")
      return await decideReviewRemotely(service, id, { verdict: "reject", reason: reason ?? "" });
    const { edits, exclusions } = decision.changes;
    return await decideReviewRemotely(service, id, {
      verdict: "approve",
      reason,
      // The service checks their form.
      edits: edits.map(({ ordinal, data }) => ({ ordinal: ordinal as number, data: data as object })),
      exclude: exclusions.map(({ ordinal }) => ordinal as number),
    });
  });
}

async function decideHere(
  composition: Composition,
  id: string,
  decision: ReviewDecision,
  { by, reason }: DecideOptions,
): Promise<ShownReview> {
  const { audit } = openOwnSigning(composition);
  const { decideReview } = await import("#actions/reviews/decide-review.ts");
  const log = await composition.log();
  const who = { actor: { kind: "cli" }, by, reason: reason ?? null } as const;
  const outcome = await composition.withDatabase(
    async (db) => await decideReview({ db, log, audit }, id, decision, who),
  );
  if (outcome.kind === "unknown") throw unknownReview(id);
  if (outcome.kind === "refused") throw new CommandFailed(refusal(outcome.problems));
  if (outcome.kind === "closed")
    throw new CommandFailed(`The review is no longer open: ${stateOf(outcome.review)}. Nothing was changed.`);
  return outcome.review;
}

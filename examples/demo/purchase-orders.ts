import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CommandFailed, print, table } from "#cli/output.ts";
import { fillIn } from "./end-user.ts";
import { LOGIN } from "./end-user-logins.ts";
import type { Example, Stage } from "./example.ts";
import {
  connect,
  follow,
  followDecided,
  insist,
  readResults,
  trigger,
  why,
  type DemoRecord,
} from "./steps.ts";
import { readTarget, switchTarget } from "./target.ts";

export const purchaseOrders: Example = {
  name: "purchase-orders",
  shows: "a file with the trigger, a review, writes that happen once, an upload form",
  documents: ["strategies/northwind-portal.yaml", "blueprints/purchase-orders.yaml"],
  play,
};

interface Line {
  readonly article: string;
  readonly supplier: string;
  readonly quantity: number;
  readonly unit_price: number;
}

interface Reviewed extends DemoRecord<Line> {
  readonly ordinal: number;
}

interface Placed extends Line {
  readonly status: number | "found";
}

const CSV = "price-list.csv";
const XLSX = "price-list.xlsx";

async function play(stage: Stage): Promise<void> {
  const { backend, surroundings } = stage;
  const credentialId = await connect(
    backend,
    { strategy: "strat_northwind_portal", name: "Dana Demo", key: "orders-connect" },
    async (hostedUrl) => await fillIn(hostedUrl, LOGIN),
  );
  // The answer to one order is lost on its way back, as happens occasionally.
  await switchTarget(surroundings.portalUrl, {
    faults: [{ kind: "lost_answer", path: "/api/orders", count: 1 }],
  });
  const runId = await triggerWith(stage, credentialId, CSV, "csv");
  const review = await waitForReview(stage, runId);
  await approve(stage, review);
  const ended = await followDecided(backend, runId);
  insist(ended.status === "completed", `The run ended: ${JSON.stringify(ended.error)}`);
  await compare(stage, runId);
  await rejectSheet(stage, credentialId, review.records);
}

async function triggerWith(
  { backend, surroundings }: Stage,
  credentialId: string,
  fileName: string,
  format: "csv" | "xlsx",
): Promise<string> {
  const bytes = readFileSync(join(surroundings.examples, "files", fileName));
  const input = {
    credential_id: credentialId,
    buyer: "Acme Inc.",
    format,
    price_list: new File([bytes], fileName),
  };
  return await trigger(backend, "purchase-orders", input, `orders-trigger-${format}`);
}

interface Review {
  readonly id: string;
  readonly records: readonly Reviewed[];
}

/** Shows what a reviewer sees: `latchkey reviews list` and `show`. */
async function waitForReview({ backend, surroundings }: Stage, runId: string): Promise<Review> {
  const run = await follow(backend, runId);
  insist(run.progress_step === "awaiting_review", `The run did not wait: ${JSON.stringify(run)}`);
  const { items } = JSON.parse(await surroundings.latchkey("reviews", "list", "--run", runId, "--json")) as {
    readonly items: readonly { readonly id: string }[];
  };
  const id = items[0]?.id ?? "";
  const lines = (await surroundings.latchkey("reviews", "show", id, "--json")).trim().split("\n");
  return { id, records: lines.map((line) => JSON.parse(line) as Reviewed) };
}

/**
 * The demo acts as the reviewer: it corrects a wrong minus sign, excludes the freight line, and leaves the line without a price
 * unchanged.
 */
async function approve({ surroundings }: Stage, { id, records }: Review): Promise<void> {
  const [slip, unwanted] = [findArticle(records, "CF-310"), findArticle(records, "KP-667")];
  const edits = join(surroundings.folder, "edits.ndjson");
  const data = { ...slip.data, quantity: -slip.data.quantity };
  writeFileSync(edits, `${JSON.stringify({ ordinal: slip.ordinal, data })}\n`);
  const decision = ({ ordinal }: Reviewed): string => {
    if (ordinal === slip.ordinal) return `edited: quantity ${data.quantity}`;
    return ordinal === unwanted.ordinal ? "left out" : "";
  };
  print(
    table(
      ["RECORD", "ARTICLE", "QUANTITY", "UNIT PRICE", "WRONG", "DECISION"],
      records.map((record) => [
        String(record.ordinal),
        record.data.article,
        String(record.data.quantity),
        record.data.unit_price.toFixed(2),
        why(record),
        decision(record),
      ]),
    ),
  );
  const options = ["--edits", edits, "--exclude", String(unwanted.ordinal), "--by", "demo"];
  print(`latchkey reviews approve ${id} --edits edits.ndjson --exclude ${unwanted.ordinal} --by demo`);
  print((await surroundings.latchkey("reviews", "approve", id, ...options)).trim());
}

function findArticle(records: readonly Reviewed[], article: string): Reviewed {
  const found = records.find(({ data }) => data.article === article);
  if (!found) throw new CommandFailed(`The review has no article ${article}.`);
  return found;
}

/** Compares the results with the portal's data. */
async function compare({ backend, surroundings }: Stage, runId: string): Promise<void> {
  const [orders, documents, portal] = await Promise.all([
    readResults<Placed>(backend, runId, "orders"),
    readResults<{ number: string; sha256: string }>(backend, runId, "document"),
    readTarget(surroundings.portalUrl),
  ]);
  const held = new Map(portal.orders.map((order) => [order.article, order]));
  print(
    `\n${table(
      ["ARTICLE", "QUANTITY", "RESULT", "THE PORTAL HOLDS"],
      orders.records.map(({ data }) => {
        const order = held.get(data.article);
        const there = order === undefined ? "nothing" : `${order.id}, quantity ${order.quantity}`;
        return [data.article, String(data.quantity), String(data.status), there];
      }),
    )}`,
  );
  const isSame = orders.records.every(({ data }) => held.get(data.article)?.quantity === data.quantity);
  const found = orders.records.filter(({ data }) => data.status === "found").length;
  insist(
    isSame && held.size === orders.totalRecords && portal.orders.length === orders.totalRecords,
    "The portal's orders differ from the results.",
  );
  insist(found === 1, `${found} orders were found by their token instead of one.`);
  print(
    `${orders.totalRecords} orders here and there, none twice. The answer to one was lost: it was found by its token.`,
  );
  const [handedIn] = documents.records;
  const isTheFile = portal.documents.some(
    ({ id, sha256 }) => id === handedIn?.data.number && sha256 === handedIn.data.sha256,
  );
  insist(isTheFile, "The portal did not get the file that came with the trigger.");
  print(`The portal stored the file as ${handedIn?.data.number}, byte for byte.`);
}

/** The same list as a sheet, which the reviewer rejects: the run is cancelled, and nothing is ordered. */
async function rejectSheet(stage: Stage, credentialId: string, before: readonly Reviewed[]): Promise<void> {
  const { backend, surroundings } = stage;
  const runId = await triggerWith(stage, credentialId, XLSX, "xlsx");
  const { id, records } = await waitForReview(stage, runId);
  const articles = (all: readonly Reviewed[]): string => JSON.stringify(all.map(({ data }) => data));
  insist(articles(records) === articles(before), "The sheet differs from the CSV.");
  await surroundings.latchkey("reviews", "reject", id, "--by", "demo", "--reason", "ordered already");
  const { status } = await followDecided(backend, runId);
  const { orders } = await readTarget(surroundings.portalUrl);
  insist(status === "cancelled" && orders.length === 6, "A rejected review did not end the run.");
  print(
    "The same list as XLSX gave the same records; rejected, its run is cancelled and nothing was ordered.",
  );
}

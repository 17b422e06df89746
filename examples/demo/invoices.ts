import { brotliDecompressSync } from "node:zlib";
import { isDeepStrictEqual } from "node:util";
import { CommandFailed, print, table } from "#cli/output.ts";
import type { Backend } from "./backend.ts";
import { fillIn } from "./end-user.ts";
import { LOGIN, LOGIN_WITH_CODE } from "./end-user-logins.ts";
import type { Example, Stage } from "./example.ts";
import {
  connect,
  followToEnd,
  heading,
  insist,
  readResults,
  trigger,
  why,
  type DemoRecord,
} from "./steps.ts";
import { readTarget } from "./target.ts";

export const PORTAL = "strat_northwind_portal";
const BLUEPRINT = "supplier-invoices";
const ROWS_SHOWN = 8;

export const invoices: Example = {
  name: "invoices",
  shows: "a login with a one-time code, pages of a JSON API, a CSV download, an HTML table",
  documents: [
    "strategies/northwind-portal.yaml",
    "blueprints/supplier-invoices.yaml",
    "blueprints/invoice-table.yaml",
  ],
  play: playBoth,
};

interface Invoice {
  readonly number: string;
  readonly supplier: string;
  readonly due: string;
  readonly currency: string;
  readonly total: number;
}

const TRIGGER = {
  run_name: "Invoices of the demo",
  purchase_order: "PO-2026-117",
  period: { from: "2019-01-01" },
};

/** The demo without a name: the whole flow, step by step. */
export async function playInvoices(backend: Backend): Promise<void> {
  heading("2. An end user connects the portal");
  const credentialId = await connect(
    backend,
    { strategy: PORTAL, name: "Demo user", key: "demo-connect-1" },
    async (hostedUrl) => await fillIn(hostedUrl, LOGIN),
  );
  heading("3. The backend triggers a run");
  const runId = await triggerTwice(backend, credentialId);
  heading("4. The run");
  await followToEnd(backend, runId);
  heading("5. The results");
  await showResults(backend, runId);
}

/** Both Blueprints on one credential with a one-time code. */
async function playBoth({ backend, surroundings }: Stage): Promise<void> {
  const credentialId = await connect(
    backend,
    { strategy: PORTAL, name: "Theo Demo", key: "invoices-connect" },
    async (hostedUrl) => await fillIn(hostedUrl, LOGIN_WITH_CODE),
  );
  const runId = await trigger(backend, BLUEPRINT, { ...TRIGGER, credential_id: credentialId });
  await followToEnd(backend, runId);
  await showResults(backend, runId);
  const tableRun = await trigger(backend, "invoice-table", { credential_id: credentialId, page: "3" });
  await followToEnd(backend, tableRun);
  const open = await readResults(backend, tableRun, "open_invoices");
  const page = await readResults(backend, tableRun, "table_page");
  print(
    `From the CSV download ${open.totalRecords} open invoices, from page 3 of the table ${page.totalRecords}.`,
  );
  const { answered } = await readTarget(surroundings.portalUrl);
  const codes = answered["POST /login/otp"]?.["302"] ?? 0;
  insist(codes === 1, `The portal saw ${codes} one-time codes instead of one.`);
  print("The portal saw one sign-in and one one-time code for both runs: the login is kept for 15 minutes.");
}

async function triggerTwice(backend: Backend, credentialId: string): Promise<string> {
  const { latchkey, signal, lastResponse } = backend;
  const input = { credential_id: credentialId, ...TRIGGER };
  const idempotencyKey = "demo-trigger-1";
  const id = await trigger(backend, BLUEPRINT, input, idempotencyKey);
  const again = await latchkey.blueprints.trigger(BLUEPRINT, input, { idempotencyKey, signal });
  const { status, replayed } = lastResponse();
  print(`The same again -> ${status} ${again.id}, Idempotent-Replay: ${replayed}`);
  if (again.id !== id || !replayed) throw new CommandFailed("The replay is not the first answer.");
  return id;
}

async function showResults(backend: Backend, runId: string): Promise<void> {
  const direct = await readResults<Invoice>(backend, runId, "invoices");
  const { totalRecords, records } = direct;
  const { latchkey, signal } = backend;
  const { results } = await latchkey.runs.readResults(runId, { signal });
  const url = results["invoices"];
  if (typeof url !== "string") throw new CommandFailed("The results came without a link.");
  const bytes = Buffer.from(await (await fetch(url)).arrayBuffer());
  const downloaded = JSON.parse(brotliDecompressSync(bytes).toString("utf8")) as unknown;
  const same = isDeepStrictEqual(downloaded, direct);
  print(`direct:        ${totalRecords} records`);
  print(`presigned_url: ${bytes.length} bytes of Brotli, ${same ? "the same records" : "DIFFERENT records"}`);
  print(`               ${url.slice(0, 100)}…`);
  if (!same) throw new CommandFailed("The two ways gave different records.");
  const invalid = records.filter((record) => !record.isValid);
  const row = ({ data }: DemoRecord<Invoice>): string[] => [
    data.number || "(none)",
    data.supplier,
    data.due,
    `${data.total.toFixed(2)} ${data.currency}`,
  ];
  print(`\n${table(["NUMBER", "SUPPLIER", "DUE", "TOTAL"], records.slice(0, ROWS_SHOWN).map(row))}`);
  print(
    `… and ${records.length - ROWS_SHOWN} more. Of ${records.length} records, ${invalid.length} invalid:\n`,
  );
  print(
    table(
      ["NUMBER", "SUPPLIER", "DUE", "TOTAL", "WHY"],
      invalid.map((record) => [...row(record), why(record)]),
    ),
  );
}

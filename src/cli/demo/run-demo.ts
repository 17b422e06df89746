import { setTimeout as sleep } from "node:timers/promises";
import { brotliDecompressSync } from "node:zlib";
import { isDeepStrictEqual } from "node:util";
import { CommandFailed, paint, print, table } from "#cli/output.ts";
import { stopSignal } from "#cli/stop-signal.ts";
import { openBackend, type Backend } from "./backend.ts";
import { fillIn } from "./end-user.ts";
import type { Environment } from "./processes.ts";
import { openSurroundings, type Surroundings } from "./surroundings.ts";

const STRATEGY = "strat_northwind_portal";
const BLUEPRINT = "supplier-invoices";
/** Of the portal's demo account; see examples/portal/accounts.ts. */
const LOGIN = { username: "demo", password: "correct horse battery staple" };
const RETURN_URL = "http://localhost:3000/connected?plan=pro";
const POLL_MS = 60;
const ROWS_SHOWN = 8;

interface DemoRecord {
  readonly data: {
    readonly number: string;
    readonly supplier: string;
    readonly due: string;
    readonly currency: string;
    readonly total: number;
  };
  readonly errors: readonly { readonly field: string | null; readonly message: string }[];
  readonly isValid: boolean;
}

/** Plays the whole flow on real parts. With `once` it ends after printing. */
export async function runDemo(root: string, foreign: Environment, once: boolean): Promise<void> {
  // Ctrl-C in the middle, or a closed terminal: the programs are stopped and the throw-away folder goes all the same.
  const told = stopSignal(["SIGINT", "SIGTERM", "SIGHUP"]);
  heading("1. The programs");
  const surroundings = await openSurroundings(root, foreign, print, told.signal);
  try {
    await told.orEarlier(play(surroundings));
    if (once) return;
    print(paint("bold", "\nEverything stays up until Ctrl-C."));
    await told.come;
  } finally {
    await surroundings.close();
  }
}

async function play(surroundings: Surroundings): Promise<void> {
  const backend = openBackend(surroundings.serviceUrl, surroundings.apiKey, surroundings.stopped);
  const credentialId = await connect(backend);
  const runId = await trigger(backend, credentialId);
  await follow(backend, runId);
  await showResults(backend, runId);
  const session = await backend.call("POST", "/credential-sessions", {
    body: { strategy_id: STRATEGY, return_url: RETURN_URL },
  });
  heading("6. To look at");
  print(`A hosted form, of a second session:  ${String(session.body["hosted_url"])}`);
  print(`  (sign in with ${LOGIN.username} / ${LOGIN.password})`);
  print(`Health:                              ${surroundings.serviceUrl}/healthz`);
  print(`Documentation:                       ${surroundings.serviceUrl}/docs`);
  print(`The portal:                          ${surroundings.portalUrl}`);
}

function heading(text: string): void {
  print(paint("bold", `\n${text}`));
}

async function connect(backend: Backend): Promise<string> {
  heading("2. An end user connects the portal");
  const created = await backend.call("POST", "/credential-sessions", {
    body: { strategy_id: STRATEGY, name: "Demo user", return_url: RETURN_URL },
    idempotencyKey: "demo-connect-1",
  });
  print(`POST /credential-sessions -> ${created.status}, status ${String(created.body["status"])}`);
  print(`Hosted form: ${String(created.body["hosted_url"])}`);
  const location = await fillIn(String(created.body["hosted_url"]), LOGIN);
  print(`The end user submits the form and is sent to ${location}`);
  const id = String(created.body["id"]);
  let session = await backend.call("GET", `/credential-sessions/${id}`);
  while (session.body["status"] !== "completed") {
    await sleep(POLL_MS);
    session = await backend.call("GET", `/credential-sessions/${id}`);
  }
  print(`GET /credential-sessions/${id} -> completed, ${String(session.body["credential_id"])}`);
  return String(session.body["credential_id"]);
}

async function trigger(backend: Backend, credentialId: string): Promise<string> {
  heading("3. The backend triggers a run");
  const request = {
    body: {
      credential_id: credentialId,
      run_name: "Invoices of the demo",
      purchase_order: "PO-2026-117",
      period: { from: "2019-01-01" },
    },
    idempotencyKey: "demo-trigger-1",
  };
  const path = `/blueprints/${BLUEPRINT}/trigger`;
  const first = await backend.call("POST", path, request);
  print(`POST ${path} -> ${first.status} ${String(first.body["id"])}`);
  const again = await backend.call("POST", path, request);
  print(
    `The same again -> ${again.status} ${String(again.body["id"])}, Idempotent-Replay: ${again.replayed}`,
  );
  if (again.body["id"] !== first.body["id"] || !again.replayed)
    throw new CommandFailed("The replay is not the first answer.");
  return String(first.body["id"]);
}

async function follow(backend: Backend, runId: string): Promise<void> {
  heading("4. The run");
  const began = performance.now();
  let shown = "";
  for (;;) {
    const { body } = await backend.call("GET", `/blueprint-runs/${runId}/status`);
    const step = `${String(body["status"])} / ${String(body["progress_step"])}`;
    if (step !== shown) print(`${((performance.now() - began) / 1000).toFixed(2).padStart(6)} s  ${step}`);
    shown = step;
    if (body["status"] === "completed") return;
    if (body["ended_at"] !== null) throw new CommandFailed(`The run ended: ${JSON.stringify(body["error"])}`);
    await sleep(POLL_MS);
  }
}

async function showResults(backend: Backend, runId: string): Promise<void> {
  heading("5. The results");
  const direct = await backend.call("GET", `/blueprint-runs/${runId}/results?deliveryMethod=direct`);
  const results = direct.body["results"] as Record<string, { totalRecords: number; records: DemoRecord[] }>;
  const { totalRecords, records } = results["invoices"] ?? { totalRecords: 0, records: [] };
  const presigned = await backend.call("GET", `/blueprint-runs/${runId}/results`);
  const url = (presigned.body["results"] as Record<string, string>)["invoices"] ?? "";
  const bytes = Buffer.from(await (await fetch(url)).arrayBuffer());
  const downloaded = JSON.parse(brotliDecompressSync(bytes).toString("utf8")) as unknown;
  const same = isDeepStrictEqual(downloaded, results["invoices"]);
  print(`direct:        ${totalRecords} records`);
  print(`presigned_url: ${bytes.length} bytes of Brotli, ${same ? "the same records" : "DIFFERENT records"}`);
  print(`               ${url.slice(0, 100)}…`);
  if (!same) throw new CommandFailed("The two ways gave different records.");
  const invalid = records.filter((record) => !record.isValid);
  const row = ({ data }: DemoRecord): string[] => [
    data.number || "(none)",
    data.supplier,
    data.due,
    `${data.total.toFixed(2)} ${data.currency}`,
  ];
  print(`\n${table(["NUMBER", "SUPPLIER", "DUE", "TOTAL"], records.slice(0, ROWS_SHOWN).map(row))}`);
  print(
    `… and ${records.length - ROWS_SHOWN} more. Of ${records.length} records, ${invalid.length} invalid:\n`,
  );
  const why = (record: DemoRecord): string =>
    record.errors.map((error) => `${error.field ?? "record"}: ${error.message}`).join("; ");
  print(
    table(
      ["NUMBER", "SUPPLIER", "DUE", "TOTAL", "WHY"],
      invalid.map((record) => [...row(record), why(record)]),
    ),
  );
}

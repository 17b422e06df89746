import { createHash } from "node:crypto";
import { newId } from "#lib/new-id.ts";
import { openCaller, type Caller } from "../test/caller.ts";
import type { Installation, ServiceProcess } from "../test/service.ts";
import type { BenchServer } from "./server.ts";
import type { SqlRows } from "./sql-rows.ts";

/** What the benches need of an installation, of this checkout or of another. */
export type Ground = Pick<
  Installation,
  "database" | "dataFolder" | "environment" | "command" | "apply" | "createKey" | "serveProcess"
>;

/** A real installation with runs, results and stored answers in it, and nothing that limits rates. */
export interface Stage {
  readonly installation: Ground;
  /** Where its database is. */
  readonly server: BenchServer;
  readonly apiKey: string;
  readonly credentialId: string;
  readonly rows: SqlRows;
  /** The keys of triggers that were answered, each with the body `triggerBody`. */
  readonly storedKeys: readonly string[];
  /** The role `api` as a process of its own, or as several that share a port. */
  serve(environment?: Record<string, string>, processes?: number): Promise<ServiceProcess>;
}

const RUNS = 2_000;
const FINISHED_RUNS = 20;
const AT_ONCE = 64;

const RECORDS = Array.from({ length: 5 }, (_, index) => ({
  number: `2026-${1_000 + index}`,
  supplier: "Nordwind GmbH",
  total: "1249.50",
  currency: "EUR",
  dueOn: "2026-12-01",
}));

/** What a backend sends: a name, one metadata item, one input. */
export const TRIGGER_BODY = JSON.stringify({
  run_name: "November invoices",
  order: "A-1042",
  rows: JSON.stringify(RECORDS),
});

const DOCUMENTS = [
  "account: acme\nrate_limit: off\nallowed_origins: [https://app.acme.example]",
  `strategy: strat_portal
account: acme
hosts: [http://127.0.0.1:9]
fields:
  - { key: token, label: Token, type: password, required: true }
login: { type: bearer, token: token }`,
  ...[
    ["invoices", ""],
    ["connected", "credentials: { main: { strategy: strat_portal } }"],
  ].map(
    ([name, credentials]) => `blueprint: ${name}
account: acme
${credentials}
metadata: [{ name: order, required: true }]
nodes:
  - { id: rows, type: input, refKey: rows }
  - { id: parsed, type: parse, from: rows, format: json }
  - { id: out, type: output, refKey: out, from: parsed }`,
  ),
];

/** Prepares an empty installation. */
export async function openStage(server: BenchServer, installation: Ground): Promise<Stage> {
  await installation.apply(...DOCUMENTS);
  const apiKey = await installation.createKey("acme");
  const credentialId = await plantCredential(installation);
  const resultRunIds = await finishRuns(installation, apiKey);
  const serve: Stage["serve"] = async (environment = {}, processes = 1) =>
    await installation.serveProcess(environment, ["api"], processes);
  const service = await serve();
  const storedKeys = Array.from({ length: RUNS }, (_, index) => `stored-${index}`);
  const runIds = await trigger(openCaller(service.url, apiKey), storedKeys);
  await service.end();
  // As after a night's autovacuum: a table that has just been filled is planned and read in another way.
  await installation.database.db.query("vacuum analyze");
  const rows = await readRows(installation, { runIds, resultRunIds, storedKeys });
  return { installation, server, apiKey, credentialId, rows, storedKeys, serve };
}

/** A credential as a row: what is sealed in it is never opened here. */
async function plantCredential(installation: Ground): Promise<string> {
  const id = newId("cred_");
  await installation.database.db.query(
    `insert into credential (id, account_id, strategy_id, session_id, sealed, kid)
     select $1, account.id, 'strat_portal', 'sess_of_' || $1, '\\x00', (select kid from vault_key limit 1) from account`,
    [id],
  );
  return id;
}

/** Runs that a real worker has carried to their results. */
async function finishRuns(installation: Ground, apiKey: string): Promise<readonly string[]> {
  const service = await installation.serveProcess();
  const caller = openCaller(service.url, apiKey);
  const ids = await trigger(
    caller,
    Array.from({ length: FINISHED_RUNS }, (_, index) => `finished-${index}`),
  );
  for (const id of ids) {
    const { body } = await caller.waitForRun(id);
    if (body.status !== "completed") throw new Error(`A run of the preparation ended as ${body.status}`);
  }
  await service.end();
  return ids;
}

/** One run a key; gives their ids. */
async function trigger(caller: Caller, keys: readonly string[]): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let at = 0; at < keys.length; at += AT_ONCE) {
    const answers = await Promise.all(
      keys
        .slice(at, at + AT_ONCE)
        .map(
          async (key) =>
            await caller.post("/blueprints/invoices/trigger", TRIGGER_BODY, { "Idempotency-Key": key }),
        ),
    );
    for (const { status, text, body } of answers) {
      if (status !== 202) throw new Error(`A trigger of the preparation was answered ${status}: ${text}`);
      ids.push(body.id);
    }
  }
  return ids;
}

async function readRows(
  installation: Ground,
  made: Pick<SqlRows, "runIds" | "resultRunIds" | "storedKeys">,
): Promise<SqlRows> {
  const [row] = await installation.database.db.query<{
    accountId: string;
    apiKeyId: string;
    blueprintId: string;
  }>(
    `select account.id as "accountId", api_key.id as "apiKeyId", blueprint.id as "blueprintId"
     from account join api_key on api_key.account_id = account.id
       join blueprint on blueprint.account_id = account.id and blueprint.key = 'invoices'`,
  );
  if (!row) throw new Error("The preparation has no account");
  const storedKeys = made.storedKeys.map((key) => createHash("sha256").update(key).digest("hex"));
  return { ...row, ...made, storedKeys, strategyId: "strat_portal", input: JSON.stringify(RECORDS) };
}

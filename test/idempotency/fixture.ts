import { newId } from "#lib/new-id.ts";
import { moveClock } from "../clock.ts";
import { openCaller, type Caller } from "../caller.ts";
import { install, type Installation, type RunningService } from "../service.ts";

/** Nothing here is ever reached: the processes of these tests have no worker. */
const UNREACHED = "http://127.0.0.1:9";

const DOCUMENTS = [
  "account: acme\nallowed_origins: [http://localhost:3000]",
  "account: globex\nallowed_origins: [http://localhost:3000]",
  "account: tight\nrate_limit: { per_second: 1, burst: 1 }",
  ...["acme", "globex"].map(
    (account) => `strategy: strat_${account}
account: ${account}
hosts: [${UNREACHED}]
fields:
  - { key: token, label: Token, type: password, required: true }
login: { type: bearer, token: token }`,
  ),
  ...[
    ["plain", "acme", ""],
    ["other", "acme", ""],
    ["secured", "acme", "credentials: { main: { strategy: strat_acme } }"],
    ["plain", "globex", ""],
    ["plain", "tight", ""],
  ].map(
    ([name, account, credentials]) => `blueprint: ${name}
account: ${account}
${credentials}
metadata: [{ name: order, required: ${name === "other"} }]
nodes:
  - { id: a, type: input, refKey: a }
  - { id: b, type: input, refKey: b }
  - { id: rows, type: parse, from: a, format: json }
  - { id: out, type: output, refKey: out, from: rows }`,
  ),
];

/** An installation whose Blueprints queue runs that nothing executes. */
export async function installIdle(): Promise<Installation & AsyncDisposable> {
  const installation = await install();
  await installation.apply(...DOCUMENTS);
  return installation;
}

/** The same with an API process, and who calls it. */
export async function serveIdle(): Promise<{
  readonly installation: Installation & AsyncDisposable;
  readonly service: RunningService;
  readonly apiKey: string;
  readonly caller: Caller;
}> {
  const installation = await installIdle();
  const service = await installation.serve({}, ["api"]);
  const apiKey = await installation.createKey("acme");
  return { installation, service, apiKey, caller: openCaller(service.url, apiKey) };
}

/** Credentials as rows: what is sealed in them is never opened here. */
export async function plantCredentials(
  installation: Installation,
  count: number,
): Promise<readonly string[]> {
  const ids = Array.from({ length: count }, () => newId("cred_"));
  await installation.database.db.query(
    `insert into credential (id, account_id, strategy_id, session_id, sealed, kid)
     select planted, account.id, 'strat_acme', 'sess_of_' || planted, '\\x00', (select kid from vault_key limit 1)
     from unnest($1::text[]) planted, account where account.slug = 'acme'`,
    [ids],
  );
  return ids;
}

/** Moves the clock that the service sees; 0 is the present. */
export async function moveHours(installation: Installation, hours: number): Promise<void> {
  await moveClock(installation.database.db, `${hours} hours`);
}

/** How many runs have this name. */
export async function runsNamed(installation: Installation, name: string): Promise<number> {
  const [row] = await installation.database.db.query<{ count: number }>(
    "select count(*) as count from run where name = convert_to($1, 'UTF8')",
    [name],
  );
  return row?.count ?? 0;
}

/** How many credential sessions have this name. */
export async function sessionsNamed(installation: Installation, name: string): Promise<number> {
  const [row] = await installation.database.db.query<{ count: number }>(
    "select count(*) as count from credential_session where name = $1",
    [name],
  );
  return row?.count ?? 0;
}

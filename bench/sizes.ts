/**
 * `npm run bench -- sizes`: what a run leaves in the database, its log and the object store, and what it takes of the processors, by what it
 * does. docs/scaling.md calculates with it.
 */
import { parseArgs } from "node:util";
import { newId } from "#lib/new-id.ts";
import { connect, openCaller, type Caller } from "../test/caller.ts";
import { LEDGER_LOGIN, ledger, startTarget } from "../test/flow/target.ts";
import { passwordLogin } from "../test/password-login.ts";
import { install, type Installation } from "../test/service.ts";
import { startReceiver } from "../test/webhooks/stage.ts";
import { costsBetween, lookAtCosts, type Costs } from "./costs.ts";
import { renderLines } from "./lines.ts";
import { makeDatabasesOn, openServer, type BenchServer } from "./server.ts";

const USAGE = `npm run bench -- sizes [options]

  --runs n      of each kind, 3,000 unless given
  --only a,b    some of the kinds, by their first word
  --markdown    the tables as Markdown`;

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    runs: { type: "string", default: "3000" },
    only: { type: "string", default: "" },
    markdown: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

/** Enough that no page that was begun counts. */
const WARM = 300;
/** Autovacuum would come at times of its own: what a run has updated makes room for the next ones after so many. */
const VACUUM_EVERY = 500;
const AT_ONCE = 32;
const PATIENCE_MS = 600_000;
const RECORDS = Array.from({ length: 1_000 }, (_, index) => ({
  number: `2026-${1_000 + index}`,
  supplier: "Nordwind GmbH",
  purchaseOrder: newId("po_"),
  total: `${((index * 7_919) % 100_000) / 100}`,
  currency: "EUR",
  dueOn: `2026-12-${String((index % 28) + 1).padStart(2, "0")}`,
}));

const GET = (id: string, url: string): string =>
  `  - { id: ${id}, type: http, request: { url: "${url}/open" }, records: items }`;
const documents = (url: string): readonly string[] => [
  "account: acme\nrate_limit: off\nconcurrency: 1000\nallowed_origins: ['http://localhost:3000']",
  `strategy: strat_portal\naccount: acme\nhosts: [${url}]\nconcurrency: 100\n${passwordLogin(302)}`,
  `blueprint: plain
account: acme
nodes:
  - { id: given, type: input, refKey: rows, accepts: json }
  - { id: lines, type: parse, from: given, format: json }
  - { id: out, type: output, refKey: out, from: lines }`,
  `blueprint: steps
account: acme
hosts: [${url}]
nodes:
${["one", "two", "three"].map((id) => GET(id, url)).join("\n")}
  - { id: out, type: output, refKey: out, from: three }`,
  `blueprint: login
account: acme
hosts: [${url}]
credentials: { portal: { strategy: strat_portal } }
nodes:
${GET("one", url).replace("type: http,", "type: http, credential: portal,")}
${["two", "three"].map((id) => GET(id, url)).join("\n")}
  - { id: out, type: output, refKey: out, from: three }`,
];

interface Kind {
  readonly name: string;
  readonly blueprint: "plain" | "steps" | "login";
  readonly rows?: readonly unknown[];
  readonly isKeyed?: true;
  readonly hasEndpoint?: true;
}

const KINDS: readonly Kind[] = [
  { name: "smallest run", blueprint: "plain", rows: [] },
  { name: "keyed: with an Idempotency-Key", blueprint: "plain", rows: [], isKeyed: true },
  { name: "steps: three, each a GET of 25 records", blueprint: "steps" },
  { name: "login: the same three, and a login", blueprint: "login" },
  {
    name: "webhooks: smallest run, start and end delivered",
    blueprint: "plain",
    rows: [],
    hasEndpoint: true,
  },
  { name: "ten records in and out, 1.4 kB", blueprint: "plain", rows: RECORDS.slice(0, 10) },
  { name: "thousand records in and out, 140 kB", blueprint: "plain", rows: RECORDS },
];

/** Of a whole database at a time. */
interface Sizes {
  readonly bytes: number;
  readonly indexBytes: number;
  readonly rows: number;
  readonly objects: number;
  readonly objectBytes: number;
  readonly tables: ReadonlyMap<string, number>;
}

async function lookAtSizes({ database: { db } }: Installation): Promise<Sizes> {
  await db.query("select pg_stat_force_next_flush()");
  const tables = await db.query<{ name: string; bytes: number; indexBytes: number; rows: number }>(
    `select relid::regclass::text as name, pg_total_relation_size(relid)::float8 as bytes, pg_indexes_size(relid)::float8 as "indexBytes",
        (n_tup_ins - n_tup_del)::float8 as rows from pg_stat_user_tables`,
  );
  const [blobs] = await db.query<{ objects: number; objectBytes: number }>(
    `select count(*)::float8 as objects, coalesce(sum(size_bytes), 0)::float8 as "objectBytes" from blob`,
  );
  const sum = (of: (table: (typeof tables)[number]) => number): number =>
    tables.reduce((total, table) => total + of(table), 0);
  return {
    bytes: sum(({ bytes }) => bytes),
    indexBytes: sum(({ indexBytes }) => indexBytes),
    rows: sum(({ rows }) => rows),
    objects: blobs?.objects ?? 0,
    objectBytes: blobs?.objectBytes ?? 0,
    tables: new Map(tables.map(({ name, bytes }) => [name, bytes])),
  };
}

interface Measured {
  readonly kind: Kind;
  /** Of one run. */
  readonly sizes: Sizes;
  readonly costs: Costs;
}

/** An installation with one process of all roles, which carries one kind of runs. */
async function measure(server: BenchServer, kind: Kind, runs: number): Promise<Measured> {
  await using opened = new AsyncDisposableStack();
  const target = await startTarget(ledger);
  opened.defer(async () => await target.close());
  const receiver = await startReceiver();
  opened.defer(async () => await receiver.close());
  const installation = opened.use(
    await install({ LATCHKEY_LOG_LEVEL: "error", LATCHKEY_WORKER_CONCURRENCY: "64" }),
  );
  await installation.apply(...documents(target.url));
  if (kind.hasEndpoint) {
    const words = ["webhooks", "create", "--account", "acme", receiver.url, "--events", "run.*"];
    const { code, stderr } = await installation.command(...words);
    if (code !== 0) throw new Error(stderr);
  }
  const service = await installation.serveProcess();
  const caller = openCaller(service.url, await installation.createKey("acme"));
  // Logins of one credential are one at a time.
  const credentials =
    kind.blueprint === "login"
      ? await Promise.all(
          Array.from({ length: AT_ONCE }, async () => await connect(caller, "strat_portal", LEDGER_LOGIN)),
        )
      : [];
  const body = (at: number): unknown => {
    if (credentials.length > 0) return { credential_id: credentials[at % credentials.length] };
    return kind.rows === undefined ? {} : { rows: JSON.stringify(kind.rows) };
  };
  await carry(installation, caller, kind, body, WARM);
  const before = await lookAtSizes(installation);
  const costsBefore = await lookAtCosts(server, [service.child.pid ?? 0]);
  for (let done = 0; done < runs; done += VACUUM_EVERY)
    await carry(installation, caller, kind, body, Math.min(VACUUM_EVERY, runs - done));
  const costsAfter = await lookAtCosts(server, [service.child.pid ?? 0]);
  const after = await lookAtSizes(installation);
  await service.end();
  const each = (of: (sizes: Sizes) => number): number => (of(after) - of(before)) / runs;
  return {
    kind,
    sizes: {
      bytes: each(({ bytes }) => bytes),
      indexBytes: each(({ indexBytes }) => indexBytes),
      rows: each(({ rows }) => rows),
      objects: each(({ objects }) => objects),
      objectBytes: each(({ objectBytes }) => objectBytes),
      tables: new Map(
        [...after.tables].map(([name, bytes]) => [name, (bytes - (before.tables.get(name) ?? 0)) / runs]),
      ),
    },
    costs: await costsBetween(server, costsBefore, costsAfter, runs),
  };
}

/** Triggers so many runs, and waits until they have ended and what is to be delivered of them is. */
async function carry(
  { database: { db } }: Installation,
  caller: Caller,
  { blueprint, isKeyed, hasEndpoint }: Kind,
  body: (at: number) => unknown,
  count: number,
): Promise<void> {
  let left = count;
  const trigger = async (): Promise<void> => {
    for (let at = --left; at >= 0; at = --left) {
      const headers: Record<string, string> = isKeyed ? { "Idempotency-Key": newId("key_") } : {};
      const { status, text } = await caller.post(`/blueprints/${blueprint}/trigger`, body(at), headers);
      if (status !== 202) throw new Error(`A trigger was answered ${status}: ${text}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, trigger));
  const open = hasEndpoint
    ? "select (select count(*) from run where ended_at is null) + (select count(*) from webhook_delivery where delivered_at is null) as open"
    : "select count(*) as open from run where ended_at is null";
  const giveUpAt = performance.now() + PATIENCE_MS;
  for (;;) {
    const [row] = await db.query<{ open: number }>(open);
    if (Number(row?.open) === 0) break;
    if (performance.now() > giveUpAt) throw new Error(`${row?.open} runs or deliveries have not ended`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const [failed] = await db.query<{ detail: string }>(
    "select error_detail as detail from run where status <> 'completed' limit 1",
  );
  if (failed) throw new Error(`A run has failed: ${failed.detail}`);
  await db.query({ text: "vacuum analyze", timeoutMs: 60_000 });
}

/** docs/operate.md#what-is-never-deleted */
const FOR_GOOD = ["run", "run_credential", "audit_entry"];

const whole = (value: number): string => Math.round(value).toLocaleString("en-US");

function render(all: readonly Measured[], isMarkdown: boolean): string {
  const lines = all.map(({ kind, sizes, costs }) => [
    kind.name,
    sizes.rows.toFixed(1),
    whole(sizes.bytes),
    whole(sizes.indexBytes),
    whole(FOR_GOOD.reduce((total, name) => total + (sizes.tables.get(name) ?? 0), 0)),
    whole(costs.walBytes),
    whole(costs.processUs),
    whole(costs.postgresUs),
    sizes.objects.toFixed(0),
    whole(sizes.objectBytes),
  ]);
  const headings = [
    ...["a run", "rows", "bytes of tables", "of it indexes", "of it for good", "bytes of WAL"],
    ...["service µs", "PostgreSQL µs", "objects", "bytes of objects"],
  ];
  return renderLines([headings, ...lines], isMarkdown);
}

/** Where most of it is. */
function renderTables({ kind, sizes }: Measured): string {
  const most = [...sizes.tables].filter(([, bytes]) => bytes >= 10).toSorted(([, a], [, b]) => b - a);
  return `${kind.name}: ${most.map(([name, bytes]) => `${name} ${whole(bytes)}`).join(", ")}`;
}

if (values.help) console.log(USAGE);
else {
  const first = values.only.split(",").filter((word) => word !== "");
  const kinds = KINDS.filter(
    ({ name }) => first.length === 0 || first.some((word) => name.split(/[ :]/, 1)[0] === word),
  );
  await using server = await openServer({ autovacuum: false, statements: false });
  makeDatabasesOn(server);
  const all: Measured[] = [];
  for (const kind of kinds) {
    const measured = await measure(server, kind, Number(values.runs));
    all.push(measured);
    process.stderr.write(`${render([measured], values.markdown)}\n${renderTables(measured)}\n`);
  }
  console.log(render(all, values.markdown));
  console.log(`\nBytes of a run by table:\n${all.map(renderTables).join("\n")}`);
}

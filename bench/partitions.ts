/**
 * What partitions by month would cost and save: the events of webhooks and the journal, as plain tables and as partitioned ones, through the
 * statements that write, read and remove their rows. CPU time of the server's process and bytes of WAL, for each row.
 */
import { parseArgs } from "node:util";
import { openPool, type Database } from "#db/connection/pool.ts";
import { must } from "#lib/assert.ts";
import { createTestDatabase, type TestDatabase } from "../test/database.ts";
import { mainThreadSeconds } from "./cpu.ts";
import { renderLines } from "./lines.ts";

const MONTHS_MS = Array.from({ length: 7 }, (_, index) => Date.UTC(2026, 8 + index, 1));
/** Before the last partitions, which are made ahead. */
const NOW_MS = Date.UTC(2026, 10, 20);
const AT_ONCE = 64;
const ENDPOINTS = 3;

/** An id as `new_event_id()` makes it: its beginning is the time. */
const place = (ms: number): string => `msg_${ms.toString(16).padStart(12, "0")}`;

/** Every table, with the column that has the time in it. */
const TABLES = {
  webhook_event: "id",
  webhook_delivery: "event_id",
  webhook_attempt: "event_id",
  run_step: "run_id",
} as const;
type Table = keyof typeof TABLES;

/** Which tables are partitioned. */
const SIDES: Readonly<Record<string, readonly Table[]>> = {
  plain: [],
  "events and attempts": ["webhook_event", "webhook_attempt"],
  all: ["webhook_event", "webhook_delivery", "webhook_attempt", "run_step"],
};

async function makeTables(db: Database, schema: string, partitioned: readonly string[]): Promise<void> {
  await db.query(`create schema ${schema}`);
  for (const [name, column] of Object.entries(TABLES) as [Table, string][]) {
    if (!partitioned.includes(name)) {
      await db.query(`create table ${schema}.${name} (like public.${name} including all)`);
      continue;
    }
    await db.query(
      `create table ${schema}.${name} (like public.${name} including all) partition by range (${column})`,
    );
    for (const [at, ms] of MONTHS_MS.slice(1).entries())
      await db.query(
        `create table ${schema}.${name}_${at} partition of ${schema}.${name} for values from ('${place(must(MONTHS_MS[at], "a month"))}') to ('${place(ms)}')`,
      );
  }
}

/** `$1`: the first id, `$2`: how many, `$3`: a number that differs each time. */
const IDS = `select 'msg_' || lpad(to_hex($1::bigint + $3::bigint), 12, '0') || lpad(to_hex(n), 20, '0') as id, n from generate_series(1, $2::int) n`;

const STEPS: readonly { readonly name: string; readonly text: string; readonly isWrite?: true }[] = [
  {
    name: "events and deliveries written",
    isWrite: true,
    text: `with ids as (${IDS}), event as (
        insert into webhook_event (id, account_id, type, subject_id, occurred_at, data)
        select id, 'acct_bench', 'run.completed', 'run_' || id, now(), '{"id":"run_0123456789012345678901234567","status":"completed"}' from ids returning id)
      insert into webhook_delivery (endpoint_id, event_id, due_at)
      select 'we_' || (row_number() over ()) % ${ENDPOINTS}, id, now() from event`,
  },
  {
    name: "due deliveries claimed",
    isWrite: true,
    text: `with due as (
        select endpoint_id, event_id from webhook_delivery where endpoint_id = 'we_' || ($3::bigint % ${ENDPOINTS}) and due_at <= now()
        order by due_at limit $2 for update skip locked)
      update webhook_delivery delivery set attempts = attempts + 1, tries = tries + 1, due_at = now() + interval '1 hour'
      from due join webhook_event event on event.id = due.event_id
      where delivery.endpoint_id = due.endpoint_id and delivery.event_id = due.event_id and $1::bigint > 0
      returning event.id, event.data`,
  },
  {
    name: "attempts recorded",
    isWrite: true,
    text: `with attempt as (
        select endpoint_id, event_id from webhook_delivery where endpoint_id = 'we_' || ($3::bigint % ${ENDPOINTS}) and due_at > now() and $1::bigint > 0
        order by due_at limit $2),
      kept as (
        insert into webhook_attempt (endpoint_id, event_id, number, began_at, duration_ms, status)
        select endpoint_id, event_id, 1, now(), 1, 200 from attempt on conflict do nothing)
      update webhook_delivery delivery set delivered_at = now(), due_at = null from attempt
      where delivery.endpoint_id = attempt.endpoint_id and delivery.event_id = attempt.event_id`,
  },
  {
    name: "due deliveries looked for, none",
    text: `select exists (select from webhook_delivery where endpoint_id = 'we_none' || $3 and due_at <= now()) from generate_series(1, $2::int) n where $1::bigint > 0`,
  },
  {
    name: "steps of runs written",
    isWrite: true,
    text: `with ids as (${IDS})
      insert into run_step (account_id, run_id, node_id, status, epoch, started_at, ended_at, output_kind, output)
      select 'acct_bench', id, 'fetch', 'done', 1, now(), now(), 'records', convert_to(repeat('{"number":"2026-1000"}', 20), 'UTF8') from ids
      on conflict (run_id, node_id) do update set attempts = run_step.attempts + 1`,
  },
  {
    name: "steps of a run read",
    text: `select * from run_step where run_id = 'msg_' || lpad(to_hex($1::bigint + $3::bigint), 12, '0') || lpad(to_hex($2::int), 20, '0')`,
  },
];

interface Cost {
  cpuMicros: number;
  walBytes: number;
}

/** What some work costs the process of the server that executes it. */
async function costOf(db: Database, pid: number, work: () => Promise<unknown>): Promise<Cost> {
  const wal = async (): Promise<number> => {
    const [row] = await db.query<{ at: number }>(
      "select (pg_current_wal_insert_lsn() - '0/0')::float8 as at",
    );
    return row?.at ?? 0;
  };
  const [walBefore, cpuBefore] = [await wal(), mainThreadSeconds(pid)];
  await work();
  const cpuMicros = (mainThreadSeconds(pid) - cpuBefore) * 1e6;
  return { cpuMicros, walBytes: (await wal()) - walBefore };
}

/** As `deleteOldEvents` and the purge of runs do: by the keys of the oldest rows, and what is left of them by the vacuum. */
async function deleteRows(db: Database, name: Table, before = "msg_g"): Promise<void> {
  const column = TABLES[name];
  const ofEndpoint = name === "webhook_delivery" || name === "webhook_attempt";
  const ids = await db.query<{ id: string }>(
    `select distinct ${column} as id from ${name} where ${column} < $1 order by 1`,
    [before],
  );
  for (let at = 0; at < ids.length; at += DELETED_AT_ONCE)
    await db.query(
      ofEndpoint
        ? `delete from ${name} using generate_series(0, ${ENDPOINTS - 1}) n where event_id = any($1) and endpoint_id = 'we_' || n`
        : `delete from ${name} where ${column} = any($1)`,
      [ids.slice(at, at + DELETED_AT_ONCE).map(({ id }) => id)],
    );
  await db.query(`vacuum ${name}`);
}

const DELETED_AT_ONCE = 500;

interface Side {
  readonly name: string;
  readonly schema: string;
  readonly db: Database;
  readonly pid: number;
}

async function openSide(database: TestDatabase, name: string): Promise<Side> {
  const schema = `side_${Object.keys(SIDES).indexOf(name)}`;
  await makeTables(database.db, schema, SIDES[name] ?? []);
  const url = new URL(database.connectionString);
  url.searchParams.set("options", `-c search_path=${schema},public`);
  const db = openPool(
    { connectionString: url.href },
    { applicationName: "bench", max: 1, statementTimeoutMs: 600_000, queryTimeoutMs: 600_000 },
  );
  const [{ pid } = { pid: 0 }] = await db.query<{ pid: number }>("select pg_backend_pid() as pid");
  return { name, schema, db, pid };
}

/** The costs of each step or table, in the order of the sides. */
async function measure(
  sides: readonly Side[],
  rounds: number,
): Promise<ReadonlyMap<string, readonly Cost[]>> {
  const costs = new Map<string, Cost[]>();
  const add = (name: string, { name: side }: Side, cost: Cost): void => {
    const at = Object.keys(SIDES).indexOf(side);
    const all = costs.get(name) ?? Object.keys(SIDES).map(() => ({ cpuMicros: 0, walBytes: 0 }));
    costs.set(name, all);
    const sum = must(all[at], "a side");
    sum.cpuMicros += cost.cpuMicros;
    sum.walBytes += cost.walBytes;
  };
  for (let round = 0; round < rounds + UNCOUNTED; round++) {
    // Each goes first in turn.
    for (const side of [...sides.slice(round % sides.length), ...sides.slice(0, round % sides.length)])
      for (const { name, text } of STEPS) {
        const statement = { name, text, values: [NOW_MS, AT_ONCE, round] };
        const cost = await costOf(side.db, side.pid, async () => await side.db.query(statement));
        if (round >= UNCOUNTED) add(name, side, cost);
      }
  }
  for (const side of sides)
    for (const table of Object.keys(TABLES) as Table[])
      add(
        `rows of ${table} removed`,
        side,
        await costOf(side.db, side.pid, async () =>
          SIDES[side.name]?.includes(table) === true
            ? await side.db.query(`drop table ${table}_2`)
            : await deleteRows(side.db, table),
        ),
      );
  return costs;
}

/**
 * How large plain tables become of which the oldest month is always deleted: megabytes with indexes after each month, of which three are kept.
 */
async function growth({ db }: Side, rounds: number): Promise<readonly string[][]> {
  const names = Object.keys(TABLES) as Table[];
  const sizes: string[][] = [];
  for (let month = 0; month < MONTHS_GROWN; month++) {
    for (let round = 0; round < rounds; round++)
      for (const { name, text } of STEPS.filter(({ isWrite }) => isWrite))
        await db.query({ name, text, values: [NOW_MS + month * 1_000_000, AT_ONCE, round] });
    const before = place(NOW_MS + (month - MONTHS_KEPT + 1) * 1_000_000);
    for (const name of names) await deleteRows(db, name, before);
    const [row] = await db.query<Record<string, number>>(
      `select ${names.map((name) => `pg_total_relation_size('${name}')::float8 / 1048576 as ${name}`).join(", ")}`,
    );
    sizes.push([`month ${month + 1}`, ...names.map((name) => (row?.[name] ?? 0).toFixed(1))]);
  }
  return [["MB, plain", ...names], ...sizes];
}

const [MONTHS_GROWN, MONTHS_KEPT] = [8, 3];

/** The first ones are planned for their values. */
const UNCOUNTED = 10;

function show(costs: ReadonlyMap<string, readonly Cost[]>, rounds: number): string {
  const rowsOf = (name: string): number => (rounds + (name.endsWith("removed") ? UNCOUNTED : 0)) * AT_ONCE;
  const lines = [...costs].map(([name, sides]) => {
    const per = (key: keyof Cost): number[] => sides.map((cost) => cost[key] / rowsOf(name));
    const [plain = Number.NaN] = per("cpuMicros");
    const ratios = per("cpuMicros")
      .slice(1)
      .map((micros) => (micros / plain).toFixed(3));
    return [
      name,
      ...per("cpuMicros").map((micros) => micros.toFixed(2)),
      ...ratios,
      ...per("walBytes").map((bytes) => bytes.toFixed(0)),
    ];
  });
  const names = Object.keys(SIDES);
  const headings = [
    "for each row",
    ...names.map((name) => `CPU µs: ${name}`),
    ...names.slice(1).map((name) => `${name} of plain`),
    ...names.map((name) => `WAL bytes: ${name}`),
  ];
  return renderLines([headings, ...lines], true);
}

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: { rounds: { type: "string", default: "300" }, help: { type: "boolean", default: false } },
});
if (values.help) {
  console.log("npm run bench -- partitions [--rounds N]");
} else {
  const rounds = Number(values.rounds);
  const database = await createTestDatabase();
  const sides: Side[] = [];
  try {
    for (const name of Object.keys(SIDES)) sides.push(await openSide(database, name));
    console.log(show(await measure(sides, rounds), rounds));
    console.log(`\n${renderLines(await growth(must(sides[0], "the plain tables"), rounds), true)}`);
  } finally {
    for (const { db } of sides) await db.end();
    await database.drop();
  }
}

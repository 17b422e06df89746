import { chmodSync, closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { openPool, type Database } from "#db/connection/pool.ts";
import type { TestDatabase } from "../database.ts";
import { EPOCH_MS } from "./fixed-chance.ts";
import { lendByPlan, shareOne } from "./stage-connections.ts";

/** Connections of all processes of a simulation. */
const CONNECTIONS = 60;
/** A transaction that a simulation has left open is a defect of the simulator. */
const RESET_LOCK_MS = 5_000;

/** Rows that were deleted are in the way of later ones, so each so many-th simulation begins with new files. */
const TRUNCATE_EACH = 20;

/** The one database of a stage, which each simulation begins with as it was in the beginning. */
export interface StageDatabase extends AsyncDisposable {
  /** The connections of all simulated processes. */
  readonly db: Database;
  /** Beside them. */
  readonly admin: Database;
  /** Rows as in the beginning. Where they lie in their files, and how statements are planned, may differ from then. */
  reset(): Promise<void>;
  /** Makes `app_now()` this many milliseconds after the simulation's beginning, for every statement at once. */
  showTime(ms: number): void;
  /** Backends of this database that wait for a lock of another one. */
  listBlocked(): Promise<readonly number[]>;
  /** Makes what the server says of its own start that of another one: it was started again, or another one was promoted. */
  replaceServer(): Promise<void>;
}

/** `given` has the rows of the beginning; it is dropped with the stage. `settings`: of all connections. */
export async function openStageDatabase(
  given: TestDatabase,
  folder: string,
  settings: Readonly<Record<string, string>>,
): Promise<StageDatabase> {
  const file = join(folder, "now");
  const time = openSync(file, "w");
  // The server may run as another user.
  chmodSync(folder, 0o755);
  chmodSync(file, 0o644);
  const showTime = (ms: number): void => void writeSync(time, String(Math.floor(ms)).padStart(16), 0);
  showTime(0);
  await given.db.query(keepBeginning(file));
  await given.db.end();
  const source = { connectionString: withSettings(given.connectionString, settings) };
  const db = openPool(source, POOL);
  const connections = lendByPlan(db.pool);
  const admin = openPool(source, { ...POOL, max: 1 });
  const leaveAdmin = await shareOne(admin.pool);
  let resets = 0;
  return {
    db,
    admin,
    reset: async () => {
      if (connections.lent() > 0)
        throw new Error(`${connections.lent()} connections of the simulation before are still in use`);
      showTime(0);
      const isNewFile = resets++ % TRUNCATE_EACH === 0;
      await admin.query(
        `set lock_timeout = ${RESET_LOCK_MS}; select simulated.reset(${isNewFile}); set lock_timeout = 0`,
      );
      connections.forgetPlans();
    },
    listBlocked: async () => {
      const contenders = connections.listContenders();
      if (contenders.length === 0) return [];
      const rows = await admin.query<{ pid: number }>({ ...LIST_BLOCKED, values: [contenders] });
      return rows.map(({ pid }) => pid);
    },
    showTime,
    replaceServer: async () => void (await admin.query("select nextval('simulated.server')")),
    [Symbol.asyncDispose]: async () => {
      closeSync(time);
      connections.end();
      leaveAdmin();
      await Promise.all([db.end(), admin.end()]);
      await given.drop();
    },
  };
}

const LIST_BLOCKED = {
  name: "list_blocked",
  text: "select pid from pg_locks where not granted and pid = any($1) order by pid",
};

/** No limit of the server's own clock: limits go by the simulation's. */
const POOL = {
  applicationName: "simulation",
  max: CONNECTIONS,
  connectTimeoutMs: 60_000,
  statementTimeoutMs: 0,
  queryTimeoutMs: 120_000,
  lockTimeoutMs: 0,
  idleInTransactionTimeoutMs: 0,
};

/** No server crashes here, so none needs to wait for its disk; and a plan that depends on how often it was asked for would be chance. */
const SETTINGS = { synchronous_commit: "off", plan_cache_mode: "force_generic_plan" };

function withSettings(connectionString: string, settings: Readonly<Record<string, string>>): string {
  const url = new URL(connectionString);
  const all = Object.entries({ ...SETTINGS, ...settings });
  url.searchParams.set("options", all.map(([name, value]) => `-c ${name}=${value}`).join(" "));
  return url.href;
}

/** In place of `pg_postmaster_start_time()`. */
export const SERVER_START_SQL = "simulated.server_start()";

const SCHEMAS = "('public'::regnamespace, 'graphile_worker'::regnamespace)";

/**
 * Statements that take the rows of the beginning aside, and say how they come back. `file` has the time. Neither plans nor the places of rows
 * decide what happens: statements of the product that give several rows say in which order (`simulator.pg.test.ts`, other plans).
 */
const keepBeginning = (file: string): string => `
  create or replace function app_now() returns timestamptz language sql stable
    return to_timestamp((${EPOCH_MS}::float8 + pg_read_file('${file}')::float8) / 1000.0);
  create schema simulated;
  create sequence simulated.server minvalue 0 start 0;
  -- Each replacement is a minute after the one before.
  create function ${SERVER_START_SQL} returns timestamptz language sql stable
    return to_timestamp(${EPOCH_MS / 1_000} - 3600 + 60 * (select last_value from simulated.server));
  create table simulated.kept (place regclass, copy text, columns text, touches regclass);
  create table simulated.counter (place regclass, last_value bigint, is_called boolean);
  -- Says that rows of a table were written, even if that was rolled back: a sequence goes on in any case.
  create function simulated.note_touch() returns trigger language plpgsql as $$ begin
    perform nextval(tg_argv[0]::regclass);
    return null;
  end $$;
  do $$ declare each record; has_rows boolean; counted record; begin
    for each in select oid::regclass::text as place, 'kept_' || oid as copy, 'simulated.touches_' || oid as touches,
          (select string_agg(quote_ident(attname), ', ' order by attnum)
          from pg_attribute where attrelid = pg_class.oid and attnum > 0 and not attisdropped and attgenerated = '') as columns
        from pg_class where relkind = 'r' and relnamespace in ${SCHEMAS} order by 1 loop
      -- What the server does by itself and by its own clock would choose other plans in other runs.
      execute format('alter table %s set (autovacuum_enabled = off)', each.place);
      execute format('select exists (select from %s)', each.place) into has_rows;
      continue when not has_rows;
      execute format('create table simulated.%I as select %s from %s', each.copy, each.columns, each.place);
      execute format('create sequence %s', each.touches);
      execute format('create trigger note_touch after insert or update or delete on %s for each statement execute function simulated.note_touch(%L)',
        each.place, each.touches);
      -- Before the first simulation, each has to come to the order that its copy has.
      perform nextval(each.touches::regclass);
      insert into simulated.kept values (each.place::regclass, each.copy, each.columns, each.touches::regclass);
    end loop;
    for each in select oid::regclass as place from pg_class where relkind = 'S' and relnamespace in ${SCHEMAS} loop
      execute format('select last_value, is_called from %s', each.place) into counted;
      insert into simulated.counter values (each.place, counted.last_value, counted.is_called);
    end loop;
  end $$;
  -- Deleting leaves connections their plans, and the server its files; what is left behind of rows shows in the order of no answer.
  do $$ declare emptied text; refilled text; begin
    select string_agg(format('delete from %s;', pg_class.oid::regclass), E'\\n' order by pg_class.oid) into emptied
      from pg_class left join simulated.kept on place = pg_class.oid
      where relkind = 'r' and relnamespace in ${SCHEMAS} and place is null;
    select string_agg(format('if pg_sequence_last_value(%L) is not null then
          delete from %s;
          insert into %s (%s) overriding system value select %s from simulated.%I;
          perform setval(%L, 1, false);
        end if;', touches, place, place, columns, columns, copy, touches), E'\\n' order by place::oid) into refilled
      from simulated.kept;
    execute format('create function simulated.delete_all() returns void language plpgsql as %L', 'begin ' || emptied || refilled || ' end');
  end $$;
  create function simulated.truncate_all() returns void language plpgsql as $$ declare each record; written text; begin
    select string_agg(pg_class.oid::regclass::text, ', ') into written from pg_class left join simulated.kept on place = pg_class.oid
      where relkind = 'r' and relnamespace in ${SCHEMAS} and pg_relation_size(pg_class.oid) > 0
        and (touches is null or pg_sequence_last_value(touches) is not null);
    execute 'truncate ' || written || ' cascade';
    for each in select * from simulated.kept where pg_relation_size(place) = 0 order by place::text loop
      execute format('insert into %s (%s) overriding system value select %s from simulated.%I',
        each.place, each.columns, each.columns, each.copy);
      perform setval(each.touches, 1, false);
    end loop;
  end $$;
  create function simulated.reset(is_new_file boolean) returns void language plpgsql as $$ begin
    set local session_replication_role = replica;
    set local client_min_messages = error;
    if is_new_file then perform simulated.truncate_all(); else perform simulated.delete_all(); end if;
    perform setval(place, last_value, is_called) from simulated.counter;
    perform setval('simulated.server', 0, false);
  end $$`;

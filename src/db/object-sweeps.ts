import { must } from "#lib/assert.ts";
import type { Database } from "./connection/pool.ts";

/** A pass over the object store. It counts first, then removes, and looks for unfinished uploads last. */
export interface ObjectSweep {
  /** The epoch of this process: once the row has a higher one, the pass belongs to another process. */
  readonly epoch: number;
  readonly isMeant: boolean;
  readonly stage: "counting" | "removing" | "unfinished";
  /** The last key of the stage that was processed, in the order of the store's listing; empty: none. */
  readonly afterKey: string;
  /** The stage so far: objects, and how many of them no row refers to. */
  readonly seen: number;
  readonly found: number;
  /** The keys found while counting, if they are few. */
  readonly orphans: readonly string[];
  /** The start of the pass minus the minimum age of an orphan, by the database's clock. */
  readonly before: Date;
}

const COLUMNS = `epoch, is_meant as "isMeant", stage, after_key as "afterKey", seen::float8 as seen, found::float8 as found, orphans,
  begun_at - $1::bigint * interval '1 ms' as before`;

/**
 * Takes over an interrupted pass from another process, or begins a new one. Also begins a new one if the last one has made no
 * progress for `forgottenMs`, because rows and objects may have been restored from a backup since. The flag of a pass that an
 * operator requested is kept.
 */
export async function takeSweep(
  db: Database,
  options: { readonly isMeant: boolean; readonly orphanAgeMs: number; readonly forgottenMs: number },
): Promise<ObjectSweep> {
  const { isMeant, orphanAgeMs, forgottenMs } = options;
  const rows = await db.query<ObjectSweep>(
    `with last as (
       select epoch, is_meant, ended_at is null and moved_at > app_now() - $3::bigint * interval '1 ms' as goes_on
       from object_sweep for update
     ), begun as (
       insert into object_sweep (epoch, is_meant, stage, after_key, seen, found, orphans, begun_at, moved_at)
       select coalesce((select epoch from last), 0) + 1, $2, case when $2 then 'removing' else 'counting' end, '', 0, 0, '{}',
         app_now(), app_now()
       where not exists (select from last where goes_on and is_meant >= $2)
       on conflict (is_only) do update set epoch = object_sweep.epoch + 1, is_meant = excluded.is_meant, stage = excluded.stage,
         after_key = '', seen = 0, found = 0, orphans = '{}', begun_at = excluded.begun_at, moved_at = excluded.moved_at,
         ended_at = null
       returning *
     ), taken as (
       update object_sweep set epoch = object_sweep.epoch + 1, moved_at = app_now()
       from last where goes_on and last.is_meant >= $2 returning object_sweep.*
     )
     select ${COLUMNS} from begun union all select ${COLUMNS} from taken`,
    [orphanAgeMs, isMeant, forgottenMs],
  );
  return must(rows[0], "the row of the sweep");
}

/** The progress of a pass. Undefined: another process has taken it over, so this one must stop. */
export async function moveSweep(
  db: Database,
  sweep: ObjectSweep,
  to: Partial<Pick<ObjectSweep, "stage" | "afterKey" | "seen" | "found" | "orphans">>,
): Promise<ObjectSweep | undefined> {
  const moved = { ...sweep, ...to };
  const rows = await db.query(
    `update object_sweep set stage = $2, after_key = $3, seen = $4, found = $5, moved_at = app_now(),
       orphans = case when $6::text[] is null then orphans else $6 end
     where epoch = $1 and ended_at is null returning 1`,
    [sweep.epoch, moved.stage, moved.afterKey, moved.seen, moved.found, to.orphans ?? null],
  );
  return rows.length === 0 ? undefined : moved;
}

/** Ends the pass. False: another process has taken it over. */
export async function endSweep(db: Database, { epoch }: ObjectSweep): Promise<boolean> {
  const rows = await db.query(
    `update object_sweep set ended_at = app_now(), moved_at = app_now(), orphans = '{}' where epoch = $1 and ended_at is null returning 1`,
    [epoch],
  );
  return rows.length > 0;
}

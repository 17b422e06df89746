import { describeRefused, type RowFault, type RowRefused } from "#domain/refused-row.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import { describeError, type Log } from "#lib/log.ts";
import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";

/** Where rows that don't verify are reported. */
export interface RowAlarms {
  /** The pool, so that an alarm is kept if the transaction that found the row is rolled back. */
  readonly db: Database;
  readonly audit: AuditKeys;
  /** null: alarms only go to the database. */
  readonly log: Log | null;
  /** Once per process. */
  readonly told: Set<string>;
  readonly telling: Set<Promise<void>>;
}

/** Raises an alarm about a row: immediately in the log, soon in the table, and the first time in the audit log. */
export function raiseRowAlarm(alarms: RowAlarms, { kind, id, fault }: RowRefused): void {
  const name = `${kind}/${id}/${fault}`;
  if (alarms.told.has(name)) return;
  alarms.told.add(name);
  alarms.log?.error({ alarm: "row_refused", kind, id, fault }, describeRefused({ kind, id, fault }));
  const telling = record(alarms, { kind, id, fault }).catch((error: unknown) => {
    // The next process, or the next `doctor`, reports it.
    alarms.told.delete(name);
    alarms.log?.error(describeError(error), "an alarm about a row could not be recorded");
  });
  alarms.telling.add(telling);
  void telling.finally(() => alarms.telling.delete(telling));
}

export async function settleRowAlarms({ telling }: RowAlarms): Promise<void> {
  await Promise.all(telling);
}

async function record(
  { db, audit }: RowAlarms,
  { kind, id, fault }: { readonly kind: string; readonly id: string; readonly fault: RowFault },
): Promise<void> {
  await db.transaction(async (tx) => {
    const rows = await tx.query<{ isNew: boolean }>(
      `insert into row_alarm (kind, id, fault) values ($1, $2, $3)
       on conflict (kind, id) do update set fault = excluded.fault, last_seen_at = app_now()
       returning xmax = 0 as "isNew"`,
      [kind, id, fault],
    );
    if (rows[0]?.isNew !== true) return;
    await recordAudit(tx, audit, {
      accountId: null,
      actor: { kind: "service" },
      action: "row.refuse",
      subjectId: id,
      detail: { kind, fault },
    });
  });
}

export interface RowAlarm {
  readonly kind: string;
  readonly id: string;
  readonly fault: RowFault;
  readonly firstSeenAt: Date;
  readonly lastSeenAt: Date;
}

/** Rows that don't verify and have not been repaired, newest first, at most `limit`. */
export async function listRowAlarms(db: Database, limit: number): Promise<readonly RowAlarm[]> {
  return await db.query<RowAlarm>({
    name: "list_row_alarms",
    text: `select kind, id, fault, first_seen_at as "firstSeenAt", last_seen_at as "lastSeenAt" from row_alarm
     order by last_seen_at desc, kind, id limit $1`,
    values: [limit],
  });
}

/** The row verifies again, or is gone. */
export async function clearRowAlarms(
  db: Database,
  rows: readonly { readonly kind: string; readonly id: string }[],
): Promise<void> {
  await db.query(
    `delete from row_alarm using unnest($1::text[], $2::text[]) as repaired (kind, id)
     where row_alarm.kind = repaired.kind and row_alarm.id = repaired.id`,
    [rows.map(({ kind }) => kind), rows.map(({ id }) => id)],
  );
}

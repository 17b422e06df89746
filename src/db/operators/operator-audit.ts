import type { PageRequest } from "#domain/page-cursor.ts";
import type { Database } from "#db/connection/pool.ts";

/** Null: any. */
export interface AuditFilter {
  readonly accountIds: readonly string[] | null;
  readonly action: string | null;
  /** An operator's id. */
  readonly operatorId: string | null;
  readonly subjectId: string | null;
  readonly since: string | null;
  readonly until: string | null;
}

export interface SeenEntry {
  readonly id: string;
  /** Null: the event belongs to the installation itself. */
  readonly account: string | null;
  readonly occurredAt: Date;
  readonly actorKind: string;
  readonly actorId: string | null;
  /** The sign-in name of an operator. */
  readonly operator: string | null;
  readonly action: string;
  readonly subjectId: string;
  readonly runId: string | null;
  readonly detail: string;
  /** Null: not yet in the chain. */
  readonly sequence: number | null;
}

/** A page of the audit log, newest first. Planned for the filters that are given. */
export async function listSeenEntries(
  db: Database,
  filter: AuditFilter,
  { after, rows }: PageRequest,
): Promise<readonly SeenEntry[]> {
  return await db.query<SeenEntry>(
    `select entry.id, account.slug as account, entry.occurred_at as "occurredAt", entry.actor_kind as "actorKind",
       entry.actor_id as "actorId", operator.email as operator, entry.action, entry.subject_id as "subjectId",
       entry.run_id as "runId", entry.detail, entry.sequence
     from audit_entry entry left join account on account.id = entry.account_id
       left join operator on entry.actor_kind = 'operator' and operator.id = entry.actor_id
     where ($1::text[] is null or entry.account_id = any($1)) and ($2::text is null or entry.action = $2)
       and ($3::text is null or (entry.actor_kind = 'operator' and entry.actor_id = $3))
       and ($4::text is null or entry.subject_id = $4)
       and ($5::timestamptz is null or entry.occurred_at >= $5) and ($6::timestamptz is null or entry.occurred_at < $6)
       and ($7::bigint is null or (entry.occurred_at, entry.id) < (timestamptz 'epoch' + $7 * interval '1 ms', $8))
     order by entry.occurred_at desc, entry.id desc limit $9`,
    [
      filter.accountIds,
      filter.action,
      filter.operatorId,
      filter.subjectId,
      filter.since,
      filter.until,
      after?.atMs ?? null,
      after?.id ?? null,
      rows,
    ],
  );
}

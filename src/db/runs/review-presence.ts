import type { Database } from "#db/connection/pool.ts";

/** Another operator who has a review open. */
export interface Present {
  /** Their email. */
  readonly operator: string;
  readonly isEditing: boolean;
  readonly since: Date;
}

interface PresenceRow {
  readonly isNews: boolean;
  readonly operator: string | null;
  readonly isEditing: boolean;
  readonly since: Date;
}

/**
 * Records that the operator has an open review in view for `liveMs`, and lists the others, the earliest first. `isNews`: they were not
 * there before, or have begun or ended to edit.
 */
export async function announcePresence(
  db: Database,
  {
    reviewId,
    operatorId,
    isEditing,
    liveMs,
  }: {
    readonly reviewId: string;
    readonly operatorId: string;
    readonly isEditing: boolean;
    readonly liveMs: number;
  },
): Promise<{ readonly isNews: boolean; readonly others: readonly Present[] }> {
  const rows = await db.query<PresenceRow>({
    name: "announce_presence",
    text: `with before as (
        select is_editing from review_presence where review_id = $1 and operator_id = $2 and expires_at > app_now()
      ), expired as (
        delete from review_presence where review_id = $1 and operator_id <> $2 and expires_at <= app_now()
      ), mine as (
        insert into review_presence (review_id, account_id, operator_id, is_editing, since, expires_at)
        select id, account_id, $2, $3, app_now(), app_now() + $4::bigint * interval '1 ms' from review
        where id = $1 and status = 'open'
        on conflict (review_id, operator_id) do update set is_editing = excluded.is_editing,
          since = case when review_presence.expires_at > app_now() then review_presence.since else excluded.since end,
          expires_at = excluded.expires_at
      )
      select news."isNews", operator.email as operator, other.is_editing as "isEditing", other.since
      from (select (select is_editing from before) is distinct from $3::boolean as "isNews") news
        left join (review_presence other join operator on operator.id = other.operator_id)
          on other.review_id = $1 and other.operator_id <> $2 and other.expires_at > app_now()
      order by other.since, operator.email`,
    values: [reviewId, operatorId, isEditing, liveMs],
  });
  return {
    isNews: rows[0]?.isNews ?? false,
    others: rows.flatMap(({ operator, isEditing: edits, since }) =>
      operator === null ? [] : [{ operator, isEditing: edits, since }],
    ),
  };
}

/** False: they were not there. */
export async function endPresence(
  db: Database,
  { reviewId, operatorId }: { readonly reviewId: string; readonly operatorId: string },
): Promise<boolean> {
  const rows = await db.query({
    name: "end_presence",
    text: `delete from review_presence where review_id = $1 and operator_id = $2 returning 1`,
    values: [reviewId, operatorId],
  });
  return rows.length > 0;
}

const CURRENT = `blueprint found join blueprint_version version on version.account_id = found.account_id
    and version.blueprint_id = found.id and version.version = found.current_version`;
const LIMIT = `(version.document::json #>> '{concurrency,limit}')::int`;

/**
 * The current limit of each Blueprint's groups of runs, which also applies to runs already waiting; null: none any more. `blueprints` has
 * their ids; the account is `$1`.
 */
export const groupsInForce = (
  blueprints: string,
): string => `select found.id, ${LIMIT} as concurrency from ${CURRENT}
  where found.account_id = $1 and found.id in (${blueprints})
  -- Each document is read once, not for each of its runs.
  offset 0`;

/** The names of groups begin with their Blueprint's id; a key is behind a slash. */
export const WAITS_FOR_GROUP = `run.waits_for like 'bp\\_%'`;

/** What a run waits for besides places and people; null: it does not. */
export interface RunWaits {
  /** A credential. */
  readonly waitsFor: string | null;
  /** The limit of its Blueprint on runs at once: of all of them, or of those with the same key. */
  readonly blueprintWait: { readonly limit: number; readonly hasKey: boolean } | null;
  /** The node whose `throttle` it queues for, or the host of the account's. */
  readonly throttleWait: string | null;
}

/** Of a row of `run`. An admission clears `waits_for`; the end of a run does not. */
export const RUN_WAITS = `case run.waits_for when '' then (select min(credential_id) from run_credential used where used.run_id = run.id)
    else case when not ${WAITS_FOR_GROUP} then run.waits_for end end as "waitsFor",
  case when ${WAITS_FOR_GROUP} and run.ended_at is null then (
    select json_build_object('limit', coalesce(${LIMIT}, 0), 'hasKey', run.waits_for like '%/%')
    from ${CURRENT} where found.id = run.blueprint_id) end as "blueprintWait",
  case when run.line like '%/%' and run.parked_at is not null and run.ended_at is null
    then substr(run.line, strpos(run.line, '/') + 1) end as "throttleWait"`;

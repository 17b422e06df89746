import { AUDITED_SINCE, NOT_BY_US, type RowCheck } from "./row-check.ts";

/** The service keeps events for 30 days; the oldest are being deleted. */
const KEPT = "interval '29 days'";
/** A run's end does not see an endpoint that is created at the same moment. */
const SEEN_AFTER = "interval '1 minute'";
const ENDS = `('run.completed', 'run.failed', 'run.cancelled')`;

/** Invariant V10: ends of runs and their events agree. */
export const EVENT_CHECKS: readonly RowCheck[] = [
  {
    invariant: "V10",
    name: "end_without_event",
    problem: "a run has ended, but there is no event for an endpoint that wants it",
    remedy: NOT_BY_US,
    // Only endpoints that are as they were created: of others nobody knows what they wanted at that time.
    find: `select 'run ' || run.id as place from run where ended_at is not null and blueprint_id is not null
        and ended_at > app_now() - ${KEPT} and ended_at >= ${AUDITED_SINCE}
        and exists (select from webhook_endpoint endpoint where endpoint.account_id = run.account_id and disabled_at is null
          and endpoint.created_at < run.ended_at - ${SEEN_AFTER} and events && array['*', 'run.*', 'run.' || run.status]
          and not exists (select from audit_entry entry where entry.subject_id = endpoint.id
            and entry.action in ('webhook.update', 'webhook.disable', 'webhook.enable')))
        and not exists (select from webhook_event event where event.subject_id = run.id and event.type = 'run.' || run.status)`,
  },
  {
    invariant: "V10",
    name: "event_without_end",
    problem: "an event tells of an end that its run does not have",
    remedy: NOT_BY_US,
    find: `select 'webhook_event ' || event.id as place from webhook_event event join run on run.id = event.subject_id
      where event.type in ${ENDS} and event.type <> 'run.' || run.status`,
  },
  {
    invariant: "V10",
    name: "end_told_twice",
    problem: "two events tell of the same end: its receivers can't know that it is one",
    remedy: NOT_BY_US,
    find: `select 'run ' || run.id as place from webhook_event event join run on run.id = event.subject_id
      where event.type in ${ENDS} group by run.id having count(*) > 1`,
  },
];

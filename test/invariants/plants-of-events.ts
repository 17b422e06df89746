import type { Plant } from "./plants-of-accounts.ts";
import type { Left } from "./workload.ts";

const event = (type: string, run: string, id = "msg_planted"): string =>
  `insert into webhook_event (id, account_id, type, subject_id, occurred_at, data)
   select '${id}', account_id, '${type}', id, app_now(), '{}' from run where id = '${run}'`;

const endpoint = (events: string): string =>
  `insert into webhook_endpoint (id, account_id, url, events, created_at)
   select 'we_planted', account_id, 'https://acme.example/', '{${events}}', created_at - interval '1 hour' from run limit 1`;

/** Events that say something else than their runs. */
export const ofEvents = ({ completed, failed }: Left): readonly Plant[] => [
  { check: "end_without_event", place: `run ${failed}`, sql: [endpoint("run.failed")] },
  { check: "event_without_end", place: "msg_planted", sql: [event("run.failed", completed)] },
  {
    check: "end_told_twice",
    place: `run ${completed}`,
    sql: [event("run.completed", completed), event("run.completed", completed, "msg_again")],
  },
];

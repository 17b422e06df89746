import {
  BUILT_IN_STEPS,
  MILESTONE_PATTERN,
  RUN_STATUSES,
  RUN_STEPS,
  TERMINAL_RUN_STATUSES,
} from "#domain/run.ts";
import { CLOCK } from "#db/runs/polls.ts";
import { DELAY } from "#db/runs/run-timers.ts";
import { NOT_BY_US, type RowCheck } from "./row-check.ts";

const list = (values: readonly string[]): string => values.map((value) => `'${value}'`).join(", ");
const TERMINAL = list(TERMINAL_RUN_STATUSES);

/** A statement under a lease that has been lost may still have been in progress for this long. */
const LATE = "interval '10 seconds'";

const check = (
  invariant: RowCheck["invariant"],
  name: string,
  problem: string,
  find: string,
  remedy = NOT_BY_US,
): RowCheck => ({ invariant, name, problem, remedy, find });

const ofRuns = (where: string): string => `select 'run ' || run.id as place from run where ${where}`;
const ofSteps = (where: string): string =>
  `select 'run_step ' || run_id || ' ' || node_id as place from run_step join run on run.id = run_id where ${where}`;
const ofWrites = (where: string): string =>
  `select 'run_write ' || run_write.run_id || ' ' || run_write.node_id || ' ' || ordinal as place
   from run_write join run on run.id = run_write.run_id where ${where}`;

/** Matches a write with an entry of the journal: a step in a loop is `<loop>.<step>`, and the entry belongs to the loop. */
const IS_ITS_STEP = "step.node_id = split_part(run_write.node_id, '.', 1)";

/** Invariants V2 to V5, V13 and V14: runs, their journal and their results. */
export const RUN_CHECKS: readonly RowCheck[] = [
  check(
    "V2",
    "run_status",
    "its status is not valid, or does not agree with `ended_at`",
    ofRuns(`status not in (${list(RUN_STATUSES)}) or (status in (${TERMINAL})) <> (ended_at is not null)`),
  ),
  check(
    "V2",
    "run_error",
    "it has an error without having failed, or failed without an error",
    ofRuns(`(status = 'failed') <> (error_kind is not null)`),
  ),
  check(
    "V2",
    "run_times",
    "its times are inconsistent: it started after its end, or before it was `running`",
    ofRuns(`started_at > ended_at or (status = 'queued' and started_at is not null)
      or (status in ('running', 'completed') and started_at is null)`),
  ),
  check(
    "V2",
    "run_progress",
    "its progress_step does not belong to its status",
    ofRuns(`(status = 'queued' and progress_step not in (${list(RUN_STEPS.queued)}))
      or (status in (${TERMINAL}) and progress_step <> status)
      or (status = 'running' and progress_step not in (${list(RUN_STEPS.running)})
        and (progress_step !~ '${MILESTONE_PATTERN}' or progress_step in (${list(BUILT_IN_STEPS)})))`),
  ),
  check(
    "V2",
    "run_ended_held",
    "it has ended, but a worker still holds it",
    ofRuns(`ended_at is not null and lease_owner is not null`),
  ),
  check(
    "V2",
    "run_worked_after_end",
    "one of its nodes was started after its end",
    `${ofSteps(`run_step.started_at > run.ended_at + ${LATE}`)} union all
     ${ofWrites(`run_write.started_at > run.ended_at + ${LATE}`)}`,
  ),
  check(
    "V2",
    "run_shown_after_end",
    "it ended more than an hour ago, but the last picture of its page is still there",
    `select 'run ' || run.id as place from live_picture join run on run.id = run_id
     where png is not null and run.ended_at < app_now() - interval '1 hour' and exists (select from worker where started_at < app_now() - interval '1 hour')`,
    "check the workers' log for the task `housekeeping`",
  ),
  check(
    "V2",
    "run_parked",
    "it waits for a person or in a queue, but its state says otherwise or it still holds a worker or slot",
    ofRuns(`ended_at is null and (parked_at is not null and line is null) <> (progress_step = 'awaiting_review')
      or ended_at is null and parked_at is not null and (status <> 'running' and line is null or lease_owner is not null or admitted_at is not null)`),
  ),
  check(
    "V2",
    "run_parked_unasked",
    "it waits for a decision, but there is nothing to decide: it would wait forever",
    ofRuns(`ended_at is null and parked_at is not null and line is null
      and not exists (select from review where review.run_id = run.id and review.status = 'open')
      and not exists (select from run_write where run_write.run_id = run.id and run_write.status = 'in_doubt')`),
    "latchkey runs cancel <run>",
  ),
  check(
    "V2",
    "run_parked_unwoken",
    "it waits to poll a target again, but no time is set: it would wait forever",
    ofRuns(`ended_at is null and parked_at is not null and line = '${CLOCK}'
      and not exists (select from run_poll where run_poll.run_id = run.id and wakes_at is not null)`),
    "latchkey runs cancel <run>",
  ),
  check(
    "V2",
    "run_delayed_unwoken",
    "it is delayed, but no time is set at which it may begin: it would wait forever",
    ofRuns(`ended_at is null and parked_at is not null and line = '${DELAY}'
      and not exists (select from run_timer where run_timer.run_id = run.id and kind = 'begin')`),
    "latchkey runs cancel <run>",
  ),
  check(
    "V2",
    "review_open_unparked",
    "it is open, but its run does not wait for it",
    `select 'review ' || review.id || ' of run ' || run.id as place from review join run on run.id = review.run_id
     where review.status = 'open' and (run.ended_at is not null or run.parked_at is null)`,
  ),
  check(
    "V2",
    "run_overdue",
    "it has exceeded its timeout by minutes and still runs",
    ofRuns(`ended_at is null and parked_at is null and admitted_at is not null and deadline_at < app_now() - interval '5 minutes'
      and exists (select from worker where heartbeat_at > app_now() - interval '15 seconds'
        and started_at < app_now() - interval '10 minutes')`),
    "read the workers' log; restart them (their runs continue), or latchkey runs cancel <run>",
  ),
  check(
    "V3",
    "write_without_step",
    "a write is recorded, but the journal does not have its node",
    ofWrites(
      `not exists (select from run_step step where step.run_id = run_write.run_id and ${IS_ITS_STEP})`,
    ),
  ),
  check(
    "V3",
    "write_unsettled_step",
    "its node is done, but it is not known whether this write happened",
    ofWrites(`run_write.status in ('started', 'in_doubt', 'ruled_out') and exists (select from run_step step
      where step.run_id = run_write.run_id and ${IS_ITS_STEP} and step.status = 'done')`),
    "ask the target whether it has the record; nothing sends it again",
  ),
  check(
    "V3",
    "write_unsettled_run",
    "its run is completed, but it is not known whether this write happened",
    ofWrites(`run_write.status in ('started', 'in_doubt', 'ruled_out') and run.status = 'completed'
      and not exists (select from run_step step where step.run_id = run_write.run_id
        and ${IS_ITS_STEP} and step.status = 'done')`),
    "ask the target whether it has the record; nothing sends it again",
  ),
  check(
    "V3",
    "write_shape",
    "its outcome, its end or its number of attempts do not agree with its status",
    ofWrites(`(run_write.status = 'done') <> (outcome is not null) or (run_write.status = 'started') <> (run_write.ended_at is null)
      or run_write.ended_at < run_write.started_at or attempts < 1`),
  ),
  check(
    "V4",
    "step_epoch",
    "it was written under a lease that its run never had",
    ofSteps(`run_step.epoch < 1 or run_step.epoch > run.lease_epoch`),
  ),
  check(
    "V4",
    "write_epoch",
    "it was written under a lease that its run never had",
    ofWrites(`run_write.epoch < 1 or run_write.epoch > run.lease_epoch`),
  ),
  check(
    "V4",
    "run_epoch",
    "it is held, or was started, without a lease or before it was admitted",
    ofRuns(
      `(lease_owner is not null and (lease_epoch < 1 or admitted_at is null)) or (started_at is not null and lease_epoch < 1)`,
    ),
  ),
  {
    ...check(
      "V4",
      "run_held_by_nobody",
      "it is held by a worker that no longer exists",
      ofRuns(`lease_owner is not null and not exists (select from worker where worker.id = run.lease_owner)`),
      "start a worker, which takes over the run",
    ),
    isPassing: true,
  },
  check(
    "V5",
    "run_response_bytes",
    "it is completed but the size of its results is not recorded, or the reverse",
    ofRuns(`(status = 'completed') <> (response_bytes is not null)`),
  ),
  check(
    "V5",
    "result_of_other_run",
    "it is a result of a run that did not complete",
    `select 'run_result ' || run_id || ' ' || ordinal as place from run_result join run on run.id = run_id
     where run.status <> 'completed'`,
  ),
  check(
    "V5",
    "result_object",
    "its object is not recorded as a result",
    `select 'run_result ' || run_result.run_id || ' ' || ordinal as place
     from run_result join blob on blob.key = run_result.blob_key where blob.purpose <> 'result'`,
  ),
  check(
    "V5",
    "result_content",
    "its content is neither in its row nor in an object, or its length differs from the recorded one",
    `select 'run_result ' || run_id || ' ' || ordinal as place from run_result
     where num_nonnulls(content, blob_key) <> 1 or octet_length(content) <> json_bytes`,
    "restore a backup that has it, or trigger the run again",
  ),
  check(
    "V5",
    "step_output",
    "it is done, but its output is not recorded",
    `select 'run_step ' || run_id || ' ' || node_id as place from run_step where status = 'done'
       and (output_kind is null or (output_kind <> 'absent') <> (num_nonnulls(blob_key, output) = 1))`,
  ),
  check(
    "V13",
    "run_sequence",
    "it has had more changes than its sequence shows: a client that follows it may see an older state after a newer one",
    `${ofRuns(`sequence < case when status = 'queued' then 1 else 2 end`)}
       and created_at >= (select applied_at from schema_migration where version = 3)`,
  ),
  check(
    "V14",
    "run_purged_before_end",
    "it is purged, but has not ended",
    ofRuns(`purged_at is not null and ended_at is null`),
  ),
  check(
    "V14",
    "run_purged_data",
    "it is purged, but some of its data remains",
    ofRuns(`purged_at is not null and (name is not null or error_detail is not null
      or metadata <> convert_to('{}', 'UTF8') or ignored_keys <> convert_to('[]', 'UTF8')
      or exists (select from run_input where run_id = run.id) or exists (select from run_result where run_id = run.id)
      or exists (select from run_step where run_id = run.id) or exists (select from run_write where run_id = run.id)
      or exists (select from live_picture where run_id = run.id and png is not null) or exists (select from run_poll where run_id = run.id) or exists (select from run_turn where run_id = run.id)
      or exists (select from review where run_id = run.id) or exists (select from blob where run_id = run.id))`),
    "if a backup was restored, purge it again: update run set purged_at = null where id = …; the worker does the rest",
  ),
  check(
    "V14",
    "run_unpurged",
    "its retention ended more than a day ago, but its data still exists",
    ofRuns(`ended_at is not null and purged_at is null
      and ended_at + retention_ms * interval '1 ms' < app_now() - interval '1 day'
      and exists (select from worker where started_at < app_now() - interval '1 hour')`),
    "check the workers' log for the task `housekeeping`",
  ),
];

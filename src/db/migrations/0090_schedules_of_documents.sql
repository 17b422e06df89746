-- Schedules that a Blueprint's document has; and what operators do with schedules: pause them, and begin a run now (docs/schedules.md).
alter table schedule add column is_from_document boolean not null default false,
  drop constraint schedule_paused_reason_check,
  add constraint schedule_paused_reason_check
    check (paused_reason in ('credential_deleted', 'blueprint_retired', 'refused', 'ended', 'operator'));
create index schedule_of_document on schedule (blueprint_id) where is_from_document;

-- Wider than before, so the rows from before meet them: nothing is to be read.
alter table schedule_fire drop constraint schedule_fire_outcome_check, drop constraint schedule_fire_check;
alter table schedule_fire
  add constraint schedule_fire_outcome_check
    check (outcome in ('run', 'manual', 'missed', 'overlap', 'credential_locked', 'refused')) not valid,
  add constraint schedule_fire_check check ((outcome in ('run', 'manual')) = (run_id is not null)) not valid;

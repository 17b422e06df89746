-- The order of waiting runs is that of run_waiting_in_turn and run_blocked_in_turn now.
drop index run_waiting;
drop index run_blocked;

-- Runs that begin by the clock (docs/schedules.md). `next_at`: the next time that nothing was decided about; null: paused. `queued_at`: the
-- time of a run that waits for an earlier one's end. `look_at`: when a worker looks at it again.
create table schedule (
  id text primary key,
  account_id text not null references account (id),
  key text not null check (key ~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$'),
  blueprint_id text not null references blueprint (id),
  cron text not null,
  time_zone text not null,
  missed text not null check (missed in ('skip', 'once', 'all')),
  overlap text not null check (overlap in ('skip', 'queue', 'cancel')),
  -- The body of each trigger, as canonical JSON.
  trigger bytea not null check (octet_length(trigger) <= 65536),
  next_at timestamptz,
  queued_at timestamptz,
  look_at timestamptz,
  paused_reason text check (paused_reason in ('credential_deleted', 'blueprint_retired', 'refused', 'ended')),
  paused_detail text check (char_length(paused_detail) <= 500),
  paused_at timestamptz,
  created_at timestamptz not null default app_now(),
  updated_at timestamptz not null default app_now(),
  unique (account_id, key),
  check ((paused_reason is null) = (next_at is not null)),
  check ((paused_reason is null) = (look_at is not null)),
  check ((paused_reason is null) = (paused_at is null)),
  check (paused_reason is null or queued_at is null)
);
create index schedule_look on schedule (look_at) where look_at is not null;

-- The credentials that its trigger names; no reference, because a deleted credential pauses it.
create table schedule_credential (
  schedule_id text not null references schedule (id) on delete cascade,
  credential_id text not null,
  primary key (schedule_id, credential_id)
);
create index schedule_credential_credential on schedule_credential (credential_id);

-- What became of each of its times: that a time has one row is what makes it one run, however many workers look.
create table schedule_fire (
  schedule_id text not null references schedule (id) on delete cascade,
  due_at timestamptz not null,
  outcome text not null check (outcome in ('run', 'missed', 'overlap', 'credential_locked', 'refused')),
  run_id text references run (id),
  fired_at timestamptz not null default app_now(),
  primary key (schedule_id, due_at),
  check ((outcome = 'run') = (run_id is not null))
);
create index schedule_fire_fired on schedule_fire (fired_at);
create index schedule_fire_run on schedule_fire (run_id) where run_id is not null;

-- Its runs that had not ended when last looked at.
create table schedule_open_run (
  run_id text primary key references run (id),
  schedule_id text not null references schedule (id) on delete cascade
);
create index schedule_open_run_schedule on schedule_open_run (schedule_id);

-- Of a run that a schedule began; the schedule may have been deleted since.
alter table run add column schedule_id text,
  drop constraint run_triggered_by;
-- Wider than before, so the rows from before meet it: nothing is to be read.
alter table run add constraint run_triggered_by check (
  num_nonnulls(api_key_id, operator_id, schedule_id) = 1
  or api_key_id is null and schedule_id is null and (again_of is not null or blueprint_id is null)
) not valid;

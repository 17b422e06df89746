-- What the steps of a loop have given, by the place of their record: after a crash nothing of it is asked for again. `node_id` is
-- `<loop>.<step>`, as in run_write, run_poll and throttle_slot.
create table run_turn (
  account_id text not null,
  run_id text not null,
  node_id text not null,
  ordinal integer not null check (ordinal >= 0),
  epoch integer not null,
  ended_at timestamptz not null default app_now(),
  output_kind text not null check (output_kind in ('records', 'text', 'json', 'file', 'absent')),
  output bytea,
  -- A program of the version before takes a run's objects away without knowing of this table.
  blob_key text references blob (key) on delete cascade,
  -- Of a file.
  filename bytea,
  content_type bytea,
  primary key (run_id, node_id, ordinal),
  foreign key (account_id, run_id) references run (account_id, id),
  check (num_nonnulls(output, blob_key) = (output_kind <> 'absent')::int)
);
create index run_turn_blob on run_turn (blob_key) where blob_key is not null;
-- Of a loop that was begun: how many records it goes through.
alter table run_step add column turns_total bigint;

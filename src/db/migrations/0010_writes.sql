-- The writes of a run: each one's intent is committed before its request is sent, and its outcome after. A write that is
-- `started` and that nobody carries, or `in_doubt`, may have happened: it is looked up or asked about, never sent blindly again.
create table run_write (
  account_id text not null,
  run_id text not null,
  node_id text not null,
  -- the record's place in the node's `for_each`; 0 for a node without one
  ordinal integer not null check (ordinal >= 0),
  status text not null check (status in ('started', 'done', 'refused', 'in_doubt', 'ruled_out')),
  epoch integer not null,
  attempts integer not null default 1,
  started_at timestamptz not null default app_now(),
  ended_at timestamptz,
  -- what the write gave, as JSON, redacted
  outcome bytea,
  -- the operator's story of a doubt: redacted
  detail text,
  decided_by text,
  decided_at timestamptz,
  primary key (run_id, node_id, ordinal),
  foreign key (account_id, run_id) references run (account_id, id),
  check ((status = 'done') = (outcome is not null)),
  check ((status = 'started') = (ended_at is null)),
  check ((decided_by is null) = (decided_at is null))
);
create index run_write_in_doubt on run_write (account_id, run_id) where status = 'in_doubt';

-- A run that waits for a person holds nothing: no worker, no lease, no place among the account's active runs.
alter table run add column parked_at timestamptz,
  -- when a person decided: such runs are admitted before all others
  add column resumed_at timestamptz,
  add check (parked_at is null or lease_owner is null),
  add check (parked_at is null or admitted_at is null or ended_at is not null);
drop index run_waiting;
create index run_waiting on run (account_id, created_at, id)
  where admitted_at is null and ended_at is null and parked_at is null and resumed_at is null;
create index run_resumed on run (account_id, resumed_at, id)
  where admitted_at is null and ended_at is null and parked_at is null and resumed_at is not null;
create index run_parked on run (account_id, parked_at) where parked_at is not null and ended_at is null;

-- The records that a node works through one by one are fixed before the first, so that each keeps its place after a crash.
alter table run_step add column source_blob_key text references blob;

-- The next free moment for a request of a node with `throttle`, for all runs and all workers.
create table throttle_slot (
  account_id text not null,
  blueprint_id text not null,
  node_id text not null,
  next_at timestamptz not null,
  primary key (account_id, blueprint_id, node_id),
  foreign key (account_id, blueprint_id) references blueprint (account_id, id)
);

-- What a trigger may ask of the queue (docs/api.md#queue-options). Priority 0 and no end of waiting: not asked. A delayed run stands in the
-- line `delay` until `not_before`.
alter table run
  add column priority smallint not null default 0 check (priority between -10 and 10),
  add column expires_at timestamptz;

-- The times at which something becomes of a run that has not begun: a row for each, deleted when it is due. Other runs have none.
create table run_timer (
  run_id text not null references run (id),
  kind text not null check (kind in ('begin', 'expire')),
  at timestamptz not null,
  primary key (run_id, kind)
);
create index run_timer_at on run_timer (at);

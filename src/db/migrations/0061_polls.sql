-- Reads that ask until the answer will do (`until`). `began_at`: the first answer that would not, from which `for` counts, whatever
-- becomes of the worker. While `wakes_at` is set its run stands in the line `clock` and holds nothing; it goes on at that time.
create table run_poll (
  account_id text not null,
  run_id text not null,
  node_id text not null,
  -- Of a step in a loop, the record's place; else 0.
  ordinal integer not null check (ordinal >= 0),
  began_at timestamptz not null default app_now(),
  asked_at timestamptz not null default app_now(),
  asks integer not null default 1 check (asks > 0),
  wakes_at timestamptz,
  primary key (run_id, node_id, ordinal),
  foreign key (account_id, run_id) references run (account_id, id)
);
create index run_poll_wakes on run_poll (wakes_at) where wakes_at is not null;

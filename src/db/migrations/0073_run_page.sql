-- When a worker first took the run; null for runs that were taken before this migration.
alter table run add column claimed_at timestamptz;

-- What nodes without journal entries of their own did until this row was written: counts and times, no records.
alter table run add column tally bytea;
alter table run_step add column tally bytea;

-- What a search finds runs by: their names and metadata, in lower case. Written after the trigger, by a worker. `grams`: a number for
-- every three successive characters of a line.
create table run_search (
  run_id text primary key references run (id),
  account_id text not null references account (id),
  created_at timestamptz not null,
  text text not null,
  grams integer[] not null
);
create index run_search_list on run_search (created_at, run_id);
create index run_search_grams on run_search using gin (grams);
create index run_search_account on run_search (account_id);

-- Runs that were created before this time are in run_search.
create table run_search_progress (
  one boolean primary key default true check (one),
  searched_to timestamptz not null
);
insert into run_search_progress (searched_to) values ('-infinity');

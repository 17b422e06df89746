-- When a worker first took the run; null for runs that were taken before this migration.
alter table run add column claimed_at timestamptz;

-- What nodes without journal entries of their own did until this row was written: counts and times, no records.
alter table run add column tally bytea;
alter table run_step add column tally bytea;

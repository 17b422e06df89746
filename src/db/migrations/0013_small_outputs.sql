-- What is small is kept in the row: an object costs a file, its name and two syncs, which is more than all the rest of a short
-- run. Larger outputs and results stay objects.
alter table run_step add column output bytea, add check (output is null or blob_key is null);

-- `content` is the JSON text itself.
alter table run_result alter column blob_key drop not null, add column content bytea,
  add check ((content is null) <> (blob_key is null));

-- By when a run's data is to go, so that the look for them costs nothing for those whose time is not over (in ms since 1970).
drop index run_purge;
create index run_purge on run (((extract(epoch from ended_at at time zone 'UTC') * 1000)::bigint + retention_ms))
  where ended_at is not null and purged_at is null;

-- Retries that a run has spent over all its nodes; limits.ts says how many it has.
alter table run add column retries integer not null default 0 check (retries >= 0);

-- Of the runs that a worker holds. With its narrower condition the index answers only who asks for a worker's runs: the plain one was
-- also taken for writes under leases, which name their runs, and these then read all runs of the worker for each of a batch.
drop index run_lease;
create index run_leased on run (lease_owner) where lease_owner is not null and admitted_at is not null;

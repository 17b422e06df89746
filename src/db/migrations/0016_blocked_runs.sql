-- The credential that a waiting run was last found to wait for: it stands aside, so that any number of runs behind one busy
-- credential cost the account's other runs nothing. Meaningless once the run is admitted or has ended.
alter table run add column waits_for text;

drop index run_waiting;
create index run_waiting on run (account_id, created_at, id)
  where admitted_at is null and ended_at is null and parked_at is null and resumed_at is null and waits_for is null;
drop index run_resumed;
create index run_resumed on run (account_id, resumed_at, id)
  where admitted_at is null and ended_at is null and parked_at is null and resumed_at is not null and waits_for is null;
create index run_blocked on run (account_id, waits_for, (resumed_at is null), (coalesce(resumed_at, created_at)), id)
  where admitted_at is null and ended_at is null and parked_at is null and waits_for is not null;

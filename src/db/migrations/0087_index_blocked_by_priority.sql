-- Runs that wait for a busy credential, in the order in which they get it: those with a decided review first.
create index concurrently run_blocked_in_turn
  on run (account_id, waits_for, (case when resumed_at is null then 11 - priority else 0 end), coalesce(resumed_at, created_at), id)
  where admitted_at is null and ended_at is null and parked_at is null and waits_for is not null;

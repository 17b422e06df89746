-- Runs that wait for a slot of their account, in the order in which they get one.
create index concurrently run_waiting_in_turn on run (account_id, priority desc, created_at, id)
  where admitted_at is null and ended_at is null and parked_at is null and resumed_at is null and waits_for is null;

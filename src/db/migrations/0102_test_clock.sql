-- The clock of a test account, which its keys may move: how far it is ahead of app_now().

alter table account add column clock_ahead_ms bigint not null default 0
  check (clock_ahead_ms >= 0 and (test_of is not null or clock_ahead_ms = 0));

-- Requests a second and at once, for each API key of the account; both null: no limit.
alter table account
  add column rate_per_second integer default 500 check (rate_per_second > 0),
  add column rate_burst integer default 1000 check (rate_burst > 0),
  add check ((rate_per_second is null) = (rate_burst is null));

-- A credential carries the origins that it may reach inside its sealed value. The column repeats them for people: nothing is decided by
-- it. Null: sealed before, or by an older process.
alter table credential add column origins text[];

-- When the credentials of before were bound to the origins of their strategies, once, with a MAC that says that a process of ours did so.
alter table installation
  add column credentials_bound_at timestamptz,
  add column credentials_bound_mac bytea check (octet_length(credentials_bound_mac) = 32),
  add check ((credentials_bound_at is null) = (credentials_bound_mac is null));

-- Tokens with which programs use the operator API: continuous integration, the command line of another machine. A row decides who may do
-- what, so it carries a MAC as operators do. It is never deleted: its name stands in decisions and in the audit log.
create table operator_token (
  id text primary key,
  name text not null check (char_length(name) between 1 and 255),
  role text not null check (role in ('admin', 'operator', 'reviewer', 'viewer')),
  token_hash bytea not null unique check (octet_length(token_hash) = 32),
  -- Null: made on the command line.
  operator_id text references operator (id),
  created_at timestamptz not null default app_now(),
  expires_at timestamptz not null check (expires_at > created_at),
  revoked_at timestamptz,
  last_used_at timestamptz,
  row_serial bigint,
  row_mac bytea check (octet_length(row_mac) = 32)
);
create index operator_token_operator on operator_token (operator_id) where operator_id is not null;

-- Entries from before satisfy the narrower check that this one replaces, so none is read.
alter table audit_entry drop constraint audit_entry_actor_kind_check;
alter table audit_entry add constraint audit_entry_actor_kind_check
  check (actor_kind in ('api_key', 'end_user', 'run', 'operator', 'operator_token', 'cli', 'service')) not valid;

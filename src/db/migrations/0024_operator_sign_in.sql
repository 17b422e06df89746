-- Sign-in of operators (design, page 6, 5.10): second factor, sessions, throttle; and the indexes of their lists.

-- No secret of the second factor is stored: its key is derived from the signing key, the operator and this nonce.
alter table operator
  add column disabled_at timestamptz,
  add column totp_nonce bytea check (octet_length(totp_nonce) = 16),
  add column totp_confirmed_at timestamptz,
  -- The last time step whose code was taken: no code counts twice.
  add column totp_step bigint,
  add check (totp_confirmed_at is null or totp_nonce is not null),
  add check (totp_step is null or totp_confirmed_at is not null);

create table operator_recovery_code (
  operator_id text not null references operator (id),
  hash bytea not null check (octet_length(hash) = 32),
  primary key (operator_id, hash)
);

-- A row is a session that may still be used; its end is its row's.
create table operator_session (
  id text primary key,
  operator_id text not null references operator (id),
  token_hash bytea not null unique check (octet_length(token_hash) = 32),
  created_at timestamptz not null default app_now(),
  seen_at timestamptz not null default app_now(),
  expires_at timestamptz not null check (expires_at > created_at),
  -- When the second factor was last given in this session.
  stepped_up_at timestamptz,
  address text not null,
  user_agent text not null check (char_length(user_agent) <= 200)
);
create index operator_session_operator on operator_session (operator_id);

-- By the name that was given, whether or not an operator has it: nobody can tell by being throttled.
create table operator_throttle (
  name_hash bytea primary key check (octet_length(name_hash) = 32),
  failures integer not null check (failures > 0),
  blocked_until timestamptz not null,
  last_at timestamptz not null
);
create index operator_throttle_last on operator_throttle (last_at);

-- Lists of runs, newest first. Most runs are completed: the other states have an index of their own.
create index run_list on run (created_at, id);
create index run_unusual on run (status, created_at, id) where status <> 'completed';
create index run_blueprint on run (blueprint_id, created_at, id);
create index run_name on run (name) where name is not null;

-- Metadata is kept as bytes, because callers' texts may hold what text and jsonb can't. A filter finds a pair by its hash. What can't
-- be read is found by nobody, and fails nothing.
create function run_metadata_pairs(metadata bytea) returns bigint[] language plpgsql immutable parallel safe as $$
begin
  return array(select hashtextextended(key || '=' || value::text, 0) from json_each(convert_from(metadata, 'UTF8')::json));
exception when others then
  return '{}';
end
$$;
create index run_metadata on run using gin (run_metadata_pairs(metadata)) where metadata <> '\x7b7d';

-- Other lists, newest first.
create index credential_list on credential (created_at, id);
create index credential_session_list on credential_session (created_at, id);
create index audit_entry_list on audit_entry (occurred_at, id);

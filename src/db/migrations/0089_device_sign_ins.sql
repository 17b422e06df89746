-- Command lines that ask to be signed in (docs/decisions/0022). A row lives for some minutes: from `latchkey login` until it has fetched
-- its token. The user code and the token are derived from the hash with the signing key, so a changed row leads to no token.
create table operator_device_sign_in (
  device_hash bytea primary key check (octet_length(device_hash) = 32),
  user_code text not null unique,
  -- What the command line says of itself, and where it asked from.
  name text not null check (char_length(name) between 1 and 255),
  address text not null,
  created_at timestamptz not null default app_now(),
  expires_at timestamptz not null,
  denied_at timestamptz,
  -- The token that an operator approved.
  token_id text references operator_token (id),
  check (denied_at is null or token_id is null)
);
create index operator_device_sign_in_expires on operator_device_sign_in (expires_at);
create index operator_device_sign_in_token on operator_device_sign_in (token_id) where token_id is not null;

-- The operator for whom a token acts: it ends with their rights. Null: a program's own token. Signed with the rest of the row.
alter table operator_token add column acts_for text references operator (id);
create index operator_token_acts_for on operator_token (acts_for) where acts_for is not null;

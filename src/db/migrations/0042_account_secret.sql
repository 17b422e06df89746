-- Secrets that an operator keeps for an account, such as that of an OAuth client. The origins that a secret may reach are in the
-- sealed value and count from there; the column says the same to people and to `apply`, which can't open it.
create table account_secret (
  account_id text not null references account (id),
  name text not null check (name ~ '^[A-Za-z_][A-Za-z0-9_]{0,127}$'),
  origins text[] not null check (cardinality(origins) between 1 and 20),
  -- Which of the values that the row has had: part of what the sealed value is bound to.
  value_id text not null check (value_id <> ''),
  sealed bytea not null check (octet_length(sealed) > 0),
  kid text not null references vault_key (kid),
  created_at timestamptz not null default app_now(),
  updated_at timestamptz not null default app_now(),
  -- Who has set this value; null: the command line.
  operator_id text references operator (id),
  primary key (account_id, name),
  check (updated_at >= created_at)
);
create index account_secret_kid on account_secret (kid);

-- An end user who has left for a target's own login: one row each time, gone ten minutes later.
create table oauth_attempt (
  -- SHA-256 of `state`: enough to recognise it, not to make one
  state_hash bytea primary key check (octet_length(state_hash) = 32),
  account_id text not null,
  session_id text not null references credential_session on delete cascade,
  strategy_id text not null,
  -- what was typed before leaving, encrypted under a key that takes the state and the signing key to make
  form bytea not null,
  created_at timestamptz not null default app_now(),
  expires_at timestamptz not null,
  used_at timestamptz,
  foreign key (account_id, strategy_id) references strategy,
  check (expires_at > created_at)
);
create index oauth_attempt_expiry on oauth_attempt (expires_at);
create index oauth_attempt_session on oauth_attempt (session_id);

-- The tokens of a credential, sealed: written once when it is collected, and again at each refresh, by whoever saw the version
-- before.
create table oauth_token (
  account_id text not null,
  credential_id text primary key,
  version integer not null check (version > 0),
  sealed bytea not null,
  kid text not null references vault_key,
  -- of the access token; null: the target does not say
  expires_at timestamptz,
  updated_at timestamptz not null default app_now(),
  foreign key (account_id, credential_id) references credential (account_id, id) on delete cascade
);
create index oauth_token_kid on oauth_token (kid);

-- The whole service's time. Tests replace this function to move the clock; nothing else decides what time it is.
-- Milliseconds, so that a value survives the way through JavaScript and back unchanged.
create function app_now() returns timestamptz
  language sql stable
  return date_trunc('milliseconds', statement_timestamp());

create table account (
  id text primary key,
  slug text not null unique,
  document text not null,
  name text not null,
  allowed_origins text[] not null,
  session_lifetime_ms bigint not null check (session_lifetime_ms > 0),
  retention_ms bigint not null check (retention_ms >= 0),
  concurrency integer not null check (concurrency > 0),
  created_at timestamptz not null default app_now(),
  updated_at timestamptz not null default app_now()
);

-- Keys are kept as a keyed hash only.
create table api_key (
  id text primary key,
  account_id text not null references account,
  name text not null,
  hash bytea not null unique check (octet_length(hash) = 32),
  -- null: every Blueprint of the account
  blueprint_keys text[],
  created_at timestamptz not null default app_now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz
);
create index api_key_account on api_key (account_id);

create table operator (
  id text primary key,
  email text not null unique,
  password_hash text not null,
  role text not null check (role in ('admin', 'operator', 'reviewer', 'viewer')),
  created_at timestamptz not null default app_now()
);

-- Public halves of the vault's master keys, so that a process without the private ones can seal.
-- The sentinel is sealed with the key: a start with another private key is refused.
create table vault_key (
  kid text primary key,
  public_jwk text not null,
  sentinel bytea not null,
  is_primary boolean not null,
  created_at timestamptz not null default app_now()
);
create unique index vault_key_one_primary on vault_key (is_primary) where is_primary;

create table strategy (
  account_id text not null references account,
  id text not null,
  current_version integer not null,
  retired boolean not null,
  primary key (account_id, id)
);

create table strategy_version (
  account_id text not null,
  strategy_id text not null,
  version integer not null,
  document text not null,
  created_at timestamptz not null default app_now(),
  primary key (account_id, strategy_id, version),
  foreign key (account_id, strategy_id) references strategy deferrable initially deferred
);
alter table strategy
  add foreign key (account_id, id, current_version) references strategy_version deferrable initially deferred;

create table blueprint (
  id text primary key,
  account_id text not null references account,
  key text not null,
  current_version integer not null,
  retired boolean not null,
  unique (account_id, key),
  unique (account_id, id)
);

create table blueprint_version (
  account_id text not null,
  blueprint_id text not null,
  version integer not null,
  document text not null,
  created_at timestamptz not null default app_now(),
  primary key (account_id, blueprint_id, version),
  foreign key (account_id, blueprint_id) references blueprint (account_id, id) deferrable initially deferred
);
alter table blueprint
  add foreign key (account_id, id, current_version) references blueprint_version deferrable initially deferred;

create table credential (
  id text primary key,
  account_id text not null references account,
  strategy_id text not null,
  session_id text not null unique,
  name text,
  -- the only place where an end user's secret is kept; `sealed` is opaque to the database
  sealed bytea not null,
  kid text not null,
  created_at timestamptz not null default app_now(),
  -- who logs in with it at the moment: logins of one credential are one at a time
  login_run_id text,
  login_until timestamptz,
  unique (account_id, id),
  foreign key (account_id, strategy_id) references strategy,
  check ((login_run_id is null) = (login_until is null))
);
create index credential_kid on credential (kid);

create table credential_session (
  id text primary key,
  account_id text not null references account,
  strategy_id text not null,
  strategy_version integer not null,
  name text,
  return_url text,
  -- SHA-256 of the token in `hosted_url`: enough to find the session, not to make a link
  token_lookup bytea not null unique,
  status text not null default 'pending' check (status in ('pending', 'completed')),
  -- no foreign key: it stays after the credential is deleted
  credential_id text,
  created_at timestamptz not null default app_now(),
  expires_at timestamptz not null,
  completed_at timestamptz,
  check ((status = 'completed') = (credential_id is not null)),
  check ((status = 'completed') = (completed_at is not null)),
  check (completed_at is null or completed_at < expires_at),
  foreign key (account_id, strategy_id, strategy_version) references strategy_version
);
create index credential_session_account on credential_session (account_id, created_at);

-- A logged-in session of a credential, sealed, for as long as its strategy's `cache` says.
create table login_session (
  account_id text not null,
  credential_id text primary key,
  strategy_version integer not null,
  sealed bytea not null,
  kid text not null,
  expires_at timestamptz not null,
  foreign key (account_id, credential_id) references credential (account_id, id) on delete cascade
);

-- A one-time code is sent once: each (credential, field, time step) is taken before it is used.
create table totp_use (
  credential_id text not null references credential on delete cascade,
  field_key text not null,
  step bigint not null,
  used_at timestamptz not null default app_now(),
  primary key (credential_id, field_key, step)
);

create table worker (
  id text primary key,
  lock_key bigint not null unique,
  -- what graphile-worker locks jobs with
  pool_ids text[] not null default '{}',
  hostname text not null,
  pid integer not null,
  started_at timestamptz not null default app_now(),
  heartbeat_at timestamptz not null default app_now()
);

create table run (
  id text primary key,
  run_key uuid not null unique,
  account_id text not null references account,
  blueprint_id text not null,
  blueprint_version integer not null,
  api_key_id text not null references api_key,
  -- caller data is bytes: it round-trips exactly
  name bytea,
  metadata bytea not null,
  ignored_keys bytea not null,
  status text not null default 'queued' check (status in ('queued', 'running', 'completed', 'failed', 'cancelled')),
  progress_step text not null default 'queued',
  created_at timestamptz not null default app_now(),
  started_at timestamptz,
  ended_at timestamptz,
  deadline_at timestamptz,
  timeout_ms bigint not null,
  retention_ms bigint not null,
  error_kind text,
  -- the operator's story: redacted, never shown on the public API
  error_detail text,
  admitted_at timestamptz,
  lease_owner text,
  lease_epoch integer not null default 0,
  lost_leases integer not null default 0,
  response_bytes bigint,
  purged_at timestamptz,
  unique (account_id, id),
  foreign key (account_id, blueprint_id, blueprint_version) references blueprint_version,
  check ((status in ('completed', 'failed', 'cancelled')) = (ended_at is not null)),
  check ((status = 'failed') = (error_kind is not null)),
  check (status <> 'queued' or started_at is null),
  check (status not in ('running', 'completed') or started_at is not null),
  check (started_at is null or ended_at is null or started_at <= ended_at),
  check ((status = 'completed') = (response_bytes is not null)),
  check (lease_owner is null or ended_at is null)
);
create index run_account on run (account_id, created_at);
create index run_waiting on run (account_id, created_at, id) where admitted_at is null and ended_at is null;
create index run_active on run (account_id, id) where admitted_at is not null and ended_at is null;
create index run_lease on run (lease_owner) where lease_owner is not null;
create index run_purge on run (ended_at) where ended_at is not null and purged_at is null;

create table run_credential (
  account_id text not null,
  run_id text not null,
  slot text not null,
  credential_id text not null,
  strategy_id text not null,
  strategy_version integer not null,
  -- runs at once with this credential; null: unlimited
  concurrency integer,
  primary key (run_id, slot),
  foreign key (account_id, run_id) references run (account_id, id),
  foreign key (account_id, strategy_id, strategy_version) references strategy_version
);
create index run_credential_credential on run_credential (credential_id);

-- Files of the object store. Metadata only: the bytes are in the store.
create table blob (
  key text primary key,
  account_id text not null references account,
  run_id text,
  purpose text not null check (purpose in ('input', 'step', 'result')),
  size_bytes bigint not null,
  sha256 bytea not null,
  created_at timestamptz not null default app_now(),
  foreign key (account_id, run_id) references run (account_id, id)
);
create index blob_run on blob (run_id);

create table run_input (
  account_id text not null,
  run_id text not null,
  ref_key text not null,
  kind text not null check (kind in ('text', 'json', 'file')),
  content bytea,
  blob_key text references blob,
  filename bytea,
  content_type bytea,
  primary key (run_id, ref_key),
  foreign key (account_id, run_id) references run (account_id, id),
  check ((kind = 'file') = (blob_key is not null)),
  check ((kind = 'file') = (content is null))
);

-- The journal: what a run has already done. The only source after a crash.
create table run_step (
  account_id text not null,
  run_id text not null,
  node_id text not null,
  status text not null check (status in ('started', 'done', 'failed')),
  epoch integer not null,
  attempts integer not null default 1,
  started_at timestamptz not null default app_now(),
  ended_at timestamptz,
  -- 'records': NDJSON in the blob; 'value': the value's bytes in the blob
  output_kind text check (output_kind in ('records', 'text', 'json', 'file', 'absent')),
  blob_key text references blob,
  records_total bigint,
  records_valid bigint,
  error_detail text,
  log bytea,
  primary key (run_id, node_id),
  foreign key (account_id, run_id) references run (account_id, id),
  check ((status = 'started') = (ended_at is null))
);

create table run_result (
  account_id text not null,
  run_id text not null,
  ordinal integer not null,
  key text not null,
  total_records bigint not null,
  json_bytes bigint not null,
  blob_key text not null references blob,
  primary key (run_id, key),
  foreign key (account_id, run_id) references run (account_id, id)
);

-- Spec, Idempotency: the record is written in the transaction of the effect.
create table idempotency_key (
  account_id text not null references account,
  key_hash bytea not null,
  fingerprint bytea not null,
  expires_at timestamptz not null,
  -- set before COMMIT: a row without an answer is never visible to another transaction
  status integer,
  body bytea,
  -- the session whose hosted token belongs into the body at `token_at` (bytes); the token itself is stored nowhere
  token_session_id text,
  token_at integer,
  primary key (account_id, key_hash),
  check ((token_session_id is null) = (token_at is null))
);
create index idempotency_key_expiry on idempotency_key (expires_at);

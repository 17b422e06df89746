-- Origins of the pages that may frame an account's embedded flow; null: its allowed_origins.
alter table account add column embed_origins text[];

-- An embedded flow: the Blueprints to choose from, and a credential for each slot of the chosen one. Its client token is
-- derived from the id and stored nowhere.
create table embedded_credential_session (
  id text primary key,
  account_id text not null references account,
  origin text not null,
  blueprint_keys text[] not null check (cardinality(blueprint_keys) >= 1),
  selected_blueprint_key text,
  name text,
  locale text,
  status text not null default 'pending' check (status in ('pending', 'completed')),
  -- the first slot's; no foreign key: it stays after the credential is deleted
  credential_id text,
  -- forms that were sent, whatever became of them
  submits integer not null default 0 check (submits >= 0),
  created_at timestamptz not null default app_now(),
  expires_at timestamptz not null,
  completed_at timestamptz,
  unique (account_id, id),
  check ((status = 'completed') = (credential_id is not null)),
  check ((status = 'completed') = (completed_at is not null)),
  check (completed_at is null or completed_at < expires_at),
  check (status <> 'completed' or selected_blueprint_key is not null),
  check (selected_blueprint_key is null or selected_blueprint_key = any (blueprint_keys))
);
create index embedded_credential_session_account on embedded_credential_session (account_id, created_at);

-- A slot of a chosen Blueprint is collected as any credential is: by a session, which has no link of its own.
alter table credential_session
  add column embedded_session_id text,
  add column blueprint_key text,
  add column slot text,
  add column slot_position integer,
  add constraint credential_session_embedded_fkey foreign key (account_id, embedded_session_id)
    references embedded_credential_session (account_id, id),
  add constraint credential_session_slot_check check (
    num_nulls(embedded_session_id, blueprint_key, slot, slot_position) in (0, 4)
  );
create unique index credential_session_slot on credential_session (embedded_session_id, blueprint_key, slot)
  where embedded_session_id is not null;

-- What an end user's window came back with, for the frame that waits for it.
alter table oauth_attempt add column outcome text check (outcome in ('refused', 'failed'));

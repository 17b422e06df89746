-- Generated from the migrations by `npm run generate`. Not run: read, and compared.

create sequence row_serial as bigint increment 1 minvalue 1 maxvalue 9223372036854775807 start 1 cache 1;

create table account (
  id text not null,
  slug text not null,
  document text not null,
  name text not null,
  allowed_origins text[] not null,
  session_lifetime_ms bigint not null,
  retention_ms bigint not null,
  concurrency integer not null,
  created_at timestamp with time zone default app_now() not null,
  updated_at timestamp with time zone default app_now() not null,
  rate_per_second integer default 500,
  rate_burst integer default 1000,
  branding jsonb,
  embed_origins text[],
  test_of text,
  clock_ahead_ms bigint default 0 not null,
  constraint account_pkey PRIMARY KEY (id),
  constraint account_slug_key UNIQUE (slug),
  constraint account_test_of_key UNIQUE (test_of),
  constraint account_test_of_fkey FOREIGN KEY (test_of) REFERENCES account(id),
  constraint account_check CHECK (((rate_per_second IS NULL) = (rate_burst IS NULL))),
  constraint account_check1 CHECK ((test_of <> id)),
  constraint account_check2 CHECK (((clock_ahead_ms >= 0) AND ((test_of IS NOT NULL) OR (clock_ahead_ms = 0)))),
  constraint account_concurrency_check CHECK ((concurrency > 0)),
  constraint account_rate_burst_check CHECK ((rate_burst > 0)),
  constraint account_rate_per_second_check CHECK ((rate_per_second > 0)),
  constraint account_retention_ms_check CHECK ((retention_ms >= 0)),
  constraint account_session_lifetime_ms_check CHECK ((session_lifetime_ms > 0))
);

create table account_logo (
  account_id text not null,
  sha256 bytea not null,
  media_type text not null,
  content bytea not null,
  constraint account_logo_pkey PRIMARY KEY (account_id),
  constraint account_logo_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id),
  constraint account_logo_content_check CHECK (((octet_length(content) >= 1) AND (octet_length(content) <= 32768))),
  constraint account_logo_media_type_check CHECK ((media_type = ANY (ARRAY['image/png'::text, 'image/jpeg'::text, 'image/webp'::text]))),
  constraint account_logo_sha256_check CHECK ((octet_length(sha256) = 32))
);
CREATE INDEX account_logo_sha256 ON public.account_logo USING btree (sha256);

create table account_secret (
  account_id text not null,
  name text not null,
  origins text[] not null,
  value_id text not null,
  sealed bytea not null,
  kid text not null,
  created_at timestamp with time zone default app_now() not null,
  updated_at timestamp with time zone default app_now() not null,
  operator_id text,
  row_serial bigint,
  row_mac bytea,
  constraint account_secret_pkey PRIMARY KEY (account_id, name),
  constraint account_secret_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id),
  constraint account_secret_kid_fkey FOREIGN KEY (kid) REFERENCES vault_key(kid),
  constraint account_secret_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES operator(id),
  constraint account_secret_check CHECK ((updated_at >= created_at)),
  constraint account_secret_name_check CHECK ((name ~ '^[A-Za-z_][A-Za-z0-9_]{0,127}$'::text)),
  constraint account_secret_origins_check CHECK (((cardinality(origins) >= 1) AND (cardinality(origins) <= 20))),
  constraint account_secret_row_mac_check CHECK ((octet_length(row_mac) = 32)),
  constraint account_secret_sealed_check CHECK ((octet_length(sealed) > 0)),
  constraint account_secret_value_id_check CHECK ((value_id <> ''::text))
);
CREATE INDEX account_secret_kid ON public.account_secret USING btree (kid);

create table account_usage (
  account_id text not null,
  stored_bytes bigint not null,
  constraint account_usage_pkey PRIMARY KEY (account_id),
  constraint account_usage_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id)
);

create table account_usage_change (
  account_id text not null,
  bytes bigint not null,
  constraint account_usage_change_bytes_check CHECK ((bytes <> 0))
);
CREATE INDEX account_usage_change_account ON public.account_usage_change USING btree (account_id);

create table api_key (
  id text not null,
  account_id text not null,
  name text not null,
  hash bytea not null,
  blueprint_keys text[],
  created_at timestamp with time zone default app_now() not null,
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  last_used_at timestamp with time zone,
  replaced_by text,
  scopes text[],
  constraint api_key_pkey PRIMARY KEY (id),
  constraint api_key_account_id_id_key UNIQUE (account_id, id),
  constraint api_key_hash_key UNIQUE (hash),
  constraint api_key_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id),
  constraint api_key_account_id_replaced_by_fkey FOREIGN KEY (account_id, replaced_by) REFERENCES api_key(account_id, id),
  constraint api_key_check CHECK (((replaced_by IS NULL) OR ((replaced_by <> id) AND (expires_at IS NOT NULL)))),
  constraint api_key_hash_check CHECK ((octet_length(hash) = 32)),
  constraint api_key_scopes_check CHECK (((scopes <@ ARRAY['runs'::text, 'sessions'::text, 'credentials:delete'::text, 'events'::text]) AND (cardinality(scopes) > 0)))
);
CREATE INDEX api_key_account ON public.api_key USING btree (account_id);

create table audit_chain (
  chain text not null,
  count bigint not null,
  head bytea not null,
  constraint audit_chain_pkey PRIMARY KEY (chain),
  constraint audit_chain_count_check CHECK ((count >= 0)),
  constraint audit_chain_head_check CHECK ((octet_length(head) = 32))
);

create table audit_entry (
  id text not null,
  account_id text,
  chain text generated always as (COALESCE(account_id, 'installation'::text)) stored not null,
  occurred_at timestamp with time zone not null,
  actor_kind text not null,
  actor_id text,
  action text not null,
  subject_id text not null,
  run_id text,
  detail text not null,
  seal bytea not null,
  sequence bigint,
  hash bytea,
  signature bytea,
  constraint audit_entry_pkey PRIMARY KEY (id),
  constraint audit_entry_chain_sequence_key UNIQUE (chain, sequence),
  constraint audit_entry_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id),
  constraint audit_entry_action_check CHECK ((action ~ '^[a-z_]+\.[a-z_]+$'::text)),
  constraint audit_entry_actor_id_check CHECK ((actor_id <> ''::text)),
  constraint audit_entry_actor_kind_check CHECK ((actor_kind = ANY (ARRAY['api_key'::text, 'end_user'::text, 'run'::text, 'operator'::text, 'operator_token'::text, 'cli'::text, 'service'::text]))) NOT VALID,
  constraint audit_entry_check CHECK ((num_nulls(sequence, hash, signature) = ANY (ARRAY[0, 3]))),
  constraint audit_entry_detail_check CHECK ((octet_length(detail) <= 65536)),
  constraint audit_entry_hash_check CHECK ((octet_length(hash) = 32)),
  constraint audit_entry_run_id_check CHECK ((run_id <> ''::text)),
  constraint audit_entry_seal_check CHECK ((octet_length(seal) = 32)),
  constraint audit_entry_sequence_check CHECK ((sequence > 0)),
  constraint audit_entry_signature_check CHECK ((octet_length(signature) = 64)),
  constraint audit_entry_subject_id_check CHECK ((subject_id <> ''::text))
);
CREATE INDEX audit_entry_account ON public.audit_entry USING btree (account_id, occurred_at, id) WHERE (account_id IS NOT NULL);
CREATE INDEX audit_entry_credential_open ON public.audit_entry USING btree (occurred_at) WHERE (action = 'credential.open'::text);
CREATE INDEX audit_entry_list ON public.audit_entry USING btree (occurred_at, id);
CREATE INDEX audit_entry_open ON public.audit_entry USING btree (chain, id) WHERE (sequence IS NULL);
CREATE INDEX audit_entry_operator ON public.audit_entry USING btree (actor_id, occurred_at, id) WHERE (actor_kind = 'operator'::text);
CREATE INDEX audit_entry_rare ON public.audit_entry USING btree (action, occurred_at, id) WHERE (action <> ALL (ARRAY['session.create'::text, 'credential.submit'::text, 'credential.open'::text, 'credential.send'::text]));
CREATE INDEX audit_entry_row ON public.audit_entry USING btree ("substring"(detail, '"row":"([^"]*)"'::text)) WHERE (detail ~~ '%"row":"%'::text);
CREATE INDEX audit_entry_subject ON public.audit_entry USING btree (subject_id, occurred_at, id);

create table audit_month (
  chain text not null,
  month date not null,
  first bigint not null,
  last bigint not null,
  previous bytea not null,
  head bytea not null,
  kept bigint not null,
  kept_sha256 bytea not null,
  file_sha256 bytea not null,
  signature bytea not null,
  constraint audit_month_pkey PRIMARY KEY (chain, last),
  constraint audit_month_chain_month_key UNIQUE (chain, month),
  constraint audit_month_check CHECK ((last >= first)),
  constraint audit_month_check1 CHECK (((kept >= 0) AND (kept <= ((last - first) + 1)))),
  constraint audit_month_file_sha256_check CHECK ((octet_length(file_sha256) = 32)),
  constraint audit_month_first_check CHECK ((first > 0)),
  constraint audit_month_head_check CHECK ((octet_length(head) = 32)),
  constraint audit_month_kept_sha256_check CHECK ((octet_length(kept_sha256) = 32)),
  constraint audit_month_month_check CHECK ((EXTRACT(day FROM month) = (1)::numeric)),
  constraint audit_month_previous_check CHECK ((octet_length(previous) = 32)),
  constraint audit_month_signature_check CHECK ((octet_length(signature) = 64))
);

create table blob (
  key text not null,
  account_id text not null,
  run_id text,
  purpose text not null,
  size_bytes bigint not null,
  sha256 bytea not null,
  created_at timestamp with time zone default app_now() not null,
  constraint blob_pkey PRIMARY KEY (key),
  constraint blob_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id),
  constraint blob_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(id),
  constraint blob_purpose_check CHECK ((purpose = ANY (ARRAY['input'::text, 'step'::text, 'result'::text])))
);
CREATE INDEX blob_run ON public.blob USING btree (run_id);

create table blueprint (
  id text not null,
  account_id text not null,
  key text not null,
  current_version integer not null,
  retired boolean not null,
  row_serial bigint,
  row_mac bytea,
  constraint blueprint_pkey PRIMARY KEY (id),
  constraint blueprint_account_id_id_key UNIQUE (account_id, id),
  constraint blueprint_account_id_key_key UNIQUE (account_id, key),
  constraint blueprint_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id),
  constraint blueprint_account_id_id_current_version_fkey FOREIGN KEY (account_id, id, current_version) REFERENCES blueprint_version(account_id, blueprint_id, version) DEFERRABLE INITIALLY DEFERRED,
  constraint blueprint_row_mac_check CHECK ((octet_length(row_mac) = 32))
);

create table blueprint_version (
  account_id text not null,
  blueprint_id text not null,
  version integer not null,
  document text not null,
  created_at timestamp with time zone default app_now() not null,
  operator_id text,
  row_serial bigint,
  row_mac bytea,
  constraint blueprint_version_pkey PRIMARY KEY (account_id, blueprint_id, version),
  constraint blueprint_version_account_id_blueprint_id_fkey FOREIGN KEY (account_id, blueprint_id) REFERENCES blueprint(account_id, id) DEFERRABLE INITIALLY DEFERRED,
  constraint blueprint_version_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES operator(id),
  constraint blueprint_version_row_mac_check CHECK ((octet_length(row_mac) = 32))
);

create table credential (
  id text not null,
  account_id text not null,
  strategy_id text not null,
  session_id text not null,
  name text,
  sealed bytea not null,
  kid text not null,
  created_at timestamp with time zone default app_now() not null,
  login_run_id text,
  login_until timestamp with time zone,
  login_rejections integer default 0 not null,
  login_locked_until timestamp with time zone,
  origins text[],
  login_next text,
  candidate_at timestamp with time zone,
  constraint credential_pkey PRIMARY KEY (id),
  constraint credential_account_id_id_key UNIQUE (account_id, id),
  constraint credential_session_id_key UNIQUE (session_id),
  constraint credential_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id),
  constraint credential_account_id_strategy_id_fkey FOREIGN KEY (account_id, strategy_id) REFERENCES strategy(account_id, id),
  constraint credential_kid_fkey FOREIGN KEY (kid) REFERENCES vault_key(kid),
  constraint credential_check CHECK (((login_run_id IS NULL) = (login_until IS NULL))),
  constraint credential_check1 CHECK (((login_locked_until IS NULL) OR (login_rejections > 0))),
  constraint credential_login_rejections_check CHECK ((login_rejections >= 0))
);
CREATE INDEX credential_candidate ON public.credential USING btree (candidate_at) WHERE (candidate_at IS NOT NULL);
CREATE INDEX credential_kid ON public.credential USING btree (kid);
CREATE INDEX credential_list ON public.credential USING btree (created_at, id);
CREATE INDEX credential_rejected ON public.credential USING btree (account_id, strategy_id) WHERE (login_rejections > 0);

create table credential_session (
  id text not null,
  account_id text not null,
  strategy_id text not null,
  strategy_version integer not null,
  name text,
  return_url text,
  token_lookup bytea not null,
  status text default 'pending'::text not null,
  credential_id text,
  created_at timestamp with time zone default app_now() not null,
  expires_at timestamp with time zone not null,
  completed_at timestamp with time zone,
  expiry_noted_at timestamp with time zone,
  embedded_session_id text,
  blueprint_key text,
  slot text,
  slot_position integer,
  first_browser bytea,
  first_opened_at timestamp with time zone,
  sign_in_failure text,
  sign_in_failed_at timestamp with time zone,
  metadata text,
  cancel_url text,
  login_check text,
  login_refusals integer default 0 not null,
  login_closed_until timestamp with time zone,
  constraint credential_session_pkey PRIMARY KEY (id),
  constraint credential_session_token_lookup_key UNIQUE (token_lookup),
  constraint credential_session_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id),
  constraint credential_session_account_id_strategy_id_strategy_version_fkey FOREIGN KEY (account_id, strategy_id, strategy_version) REFERENCES strategy_version(account_id, strategy_id, version),
  constraint credential_session_embedded_fkey FOREIGN KEY (account_id, embedded_session_id) REFERENCES embedded_credential_session(account_id, id),
  constraint credential_session_check CHECK (((status = 'completed'::text) = (credential_id IS NOT NULL))),
  constraint credential_session_check1 CHECK (((status = 'completed'::text) = (completed_at IS NOT NULL))),
  constraint credential_session_check2 CHECK (((completed_at IS NULL) OR (completed_at < expires_at))),
  constraint credential_session_check3 CHECK (((first_browser IS NULL) = (first_opened_at IS NULL))),
  constraint credential_session_check4 CHECK (((sign_in_failure IS NULL) = (sign_in_failed_at IS NULL))),
  constraint credential_session_first_browser_check CHECK ((octet_length(first_browser) = 32)),
  constraint credential_session_login_check_check CHECK ((login_check = ANY (ARRAY['accepted'::text, 'refused'::text, 'unanswered'::text]))),
  constraint credential_session_login_refusals_check CHECK ((login_refusals >= 0)),
  constraint credential_session_metadata_check CHECK ((octet_length(metadata) <= 65536)),
  constraint credential_session_sign_in_failure_check CHECK ((char_length(sign_in_failure) <= 500)),
  constraint credential_session_slot_check CHECK ((num_nulls(embedded_session_id, blueprint_key, slot, slot_position) = ANY (ARRAY[0, 4]))),
  constraint credential_session_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'completed'::text])))
);
CREATE INDEX credential_session_account ON public.credential_session USING btree (account_id, created_at);
CREATE INDEX credential_session_expiring ON public.credential_session USING btree (expires_at) WHERE ((status = 'pending'::text) AND (expiry_noted_at IS NULL));
CREATE INDEX credential_session_list ON public.credential_session USING btree (created_at, id);
CREATE UNIQUE INDEX credential_session_slot ON public.credential_session USING btree (embedded_session_id, blueprint_key, slot) WHERE (embedded_session_id IS NOT NULL);

create table document_source (
  kind text not null,
  account_id text not null,
  document_id text not null,
  version integer not null,
  text text not null,
  constraint document_source_pkey PRIMARY KEY (account_id, kind, document_id, version),
  constraint document_source_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id),
  constraint document_source_kind_check CHECK ((kind = ANY (ARRAY['strategy'::text, 'blueprint'::text]))),
  constraint document_source_version_check CHECK ((version > 0))
);

create table embedded_credential_session (
  id text not null,
  account_id text not null,
  origin text not null,
  blueprint_keys text[] not null,
  selected_blueprint_key text,
  name text,
  locale text,
  status text default 'pending'::text not null,
  credential_id text,
  submits integer default 0 not null,
  created_at timestamp with time zone default app_now() not null,
  expires_at timestamp with time zone not null,
  completed_at timestamp with time zone,
  expiry_noted_at timestamp with time zone,
  constraint embedded_credential_session_pkey PRIMARY KEY (id),
  constraint embedded_credential_session_account_id_id_key UNIQUE (account_id, id),
  constraint embedded_credential_session_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id),
  constraint embedded_credential_session_blueprint_keys_check CHECK ((cardinality(blueprint_keys) >= 1)),
  constraint embedded_credential_session_check CHECK (((status = 'completed'::text) = (credential_id IS NOT NULL))),
  constraint embedded_credential_session_check1 CHECK (((status = 'completed'::text) = (completed_at IS NOT NULL))),
  constraint embedded_credential_session_check2 CHECK (((completed_at IS NULL) OR (completed_at < expires_at))),
  constraint embedded_credential_session_check3 CHECK (((status <> 'completed'::text) OR (selected_blueprint_key IS NOT NULL))),
  constraint embedded_credential_session_check4 CHECK (((selected_blueprint_key IS NULL) OR (selected_blueprint_key = ANY (blueprint_keys)))),
  constraint embedded_credential_session_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'completed'::text]))),
  constraint embedded_credential_session_submits_check CHECK ((submits >= 0))
);
CREATE INDEX embedded_credential_session_account ON public.embedded_credential_session USING btree (account_id, created_at);
CREATE INDEX embedded_credential_session_expiring ON public.embedded_credential_session USING btree (expires_at) WHERE ((status = 'pending'::text) AND (expiry_noted_at IS NULL));

create table event_listener (
  account_id text not null,
  ends_at timestamp with time zone not null,
  constraint event_listener_pkey PRIMARY KEY (account_id),
  constraint event_listener_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id)
);

create table idempotency_key (
  account_id text not null,
  key_hash bytea not null,
  fingerprint bytea not null,
  expires_at timestamp with time zone not null,
  status integer,
  body bytea,
  token_session_id text,
  token_at integer,
  bytes_fingerprint bytea,
  constraint idempotency_key_pkey PRIMARY KEY (account_id, key_hash),
  constraint idempotency_key_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id),
  constraint idempotency_key_check CHECK (((token_session_id IS NULL) = (token_at IS NULL)))
);
CREATE INDEX idempotency_key_expiry ON public.idempotency_key USING btree (expires_at);

create table installation (
  is_only boolean default true not null,
  signing_key_print bytea not null,
  created_at timestamp with time zone default app_now() not null,
  credentials_bound_at timestamp with time zone,
  credentials_bound_mac bytea,
  id uuid default gen_random_uuid() not null,
  constraint installation_pkey PRIMARY KEY (is_only),
  constraint installation_check CHECK (((credentials_bound_at IS NULL) = (credentials_bound_mac IS NULL))),
  constraint installation_credentials_bound_mac_check CHECK ((octet_length(credentials_bound_mac) = 32)),
  constraint installation_is_only_check CHECK (is_only),
  constraint installation_signing_key_print_check CHECK ((octet_length(signing_key_print) = 32))
);

create table live_picture (
  run_id text not null,
  watched_until timestamp with time zone not null,
  step text,
  png bytea,
  taken_at timestamp with time zone,
  constraint live_picture_pkey PRIMARY KEY (run_id),
  constraint live_picture_size CHECK ((octet_length(png) <= 200000)),
  constraint live_picture_whole CHECK ((num_nonnulls(step, png, taken_at) = ANY (ARRAY[0, 3])))
) -- unlogged;

create table login_session (
  account_id text not null,
  credential_id text not null,
  strategy_version integer not null,
  sealed bytea not null,
  kid text not null,
  expires_at timestamp with time zone not null,
  login_id text not null,
  constraint login_session_pkey PRIMARY KEY (credential_id),
  constraint login_session_account_id_credential_id_fkey FOREIGN KEY (account_id, credential_id) REFERENCES credential(account_id, id) ON DELETE CASCADE,
  constraint login_session_kid_fkey FOREIGN KEY (kid) REFERENCES vault_key(kid)
);
CREATE INDEX login_session_kid ON public.login_session USING btree (kid);

create table oauth_attempt (
  state_hash bytea not null,
  account_id text not null,
  session_id text not null,
  strategy_id text not null,
  form bytea not null,
  created_at timestamp with time zone default app_now() not null,
  expires_at timestamp with time zone not null,
  used_at timestamp with time zone,
  outcome text,
  answer bytea,
  constraint oauth_attempt_pkey PRIMARY KEY (state_hash),
  constraint oauth_attempt_account_id_strategy_id_fkey FOREIGN KEY (account_id, strategy_id) REFERENCES strategy(account_id, id),
  constraint oauth_attempt_session_id_fkey FOREIGN KEY (session_id) REFERENCES credential_session(id) ON DELETE CASCADE,
  constraint oauth_attempt_answer_check CHECK ((octet_length(answer) > 0)),
  constraint oauth_attempt_check CHECK ((expires_at > created_at)),
  constraint oauth_attempt_outcome_check CHECK ((outcome = ANY (ARRAY['refused'::text, 'failed'::text]))),
  constraint oauth_attempt_state_hash_check CHECK ((octet_length(state_hash) = 32))
);
CREATE INDEX oauth_attempt_expiry ON public.oauth_attempt USING btree (expires_at);
CREATE INDEX oauth_attempt_session ON public.oauth_attempt USING btree (session_id);

create table oauth_token (
  account_id text not null,
  credential_id text not null,
  version integer not null,
  sealed bytea not null,
  kid text not null,
  expires_at timestamp with time zone,
  updated_at timestamp with time zone default app_now() not null,
  constraint oauth_token_pkey PRIMARY KEY (credential_id),
  constraint oauth_token_account_id_credential_id_fkey FOREIGN KEY (account_id, credential_id) REFERENCES credential(account_id, id) ON DELETE CASCADE,
  constraint oauth_token_kid_fkey FOREIGN KEY (kid) REFERENCES vault_key(kid),
  constraint oauth_token_version_check CHECK ((version > 0))
);
CREATE INDEX oauth_token_kid ON public.oauth_token USING btree (kid);

create table object_sweep (
  is_only boolean default true not null,
  epoch integer not null,
  is_meant boolean not null,
  stage text not null,
  after_key text not null,
  seen bigint not null,
  found bigint not null,
  orphans text[] not null,
  begun_at timestamp with time zone not null,
  moved_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  constraint object_sweep_pkey PRIMARY KEY (is_only),
  constraint object_sweep_check CHECK (((found >= 0) AND (found <= seen))),
  constraint object_sweep_epoch_check CHECK ((epoch > 0)),
  constraint object_sweep_is_only_check CHECK (is_only),
  constraint object_sweep_orphans_check CHECK ((cardinality(orphans) <= 1000)),
  constraint object_sweep_seen_check CHECK ((seen >= 0)),
  constraint object_sweep_stage_check CHECK ((stage = ANY (ARRAY['counting'::text, 'removing'::text, 'unfinished'::text])))
);

create table operator (
  id text not null,
  email text not null,
  password_hash text not null,
  role text not null,
  created_at timestamp with time zone default app_now() not null,
  disabled_at timestamp with time zone,
  totp_nonce bytea,
  totp_confirmed_at timestamp with time zone,
  totp_step bigint,
  oidc_issuer text,
  oidc_subject text,
  oidc_linked_at timestamp with time zone,
  row_serial bigint,
  row_mac bytea,
  first_password_until timestamp with time zone,
  account_ids text[],
  signed_in_at timestamp with time zone,
  constraint operator_pkey PRIMARY KEY (id),
  constraint operator_email_key UNIQUE (email),
  constraint operator_account_ids_check CHECK ((cardinality(account_ids) > 0)),
  constraint operator_check CHECK (((totp_confirmed_at IS NULL) OR (totp_nonce IS NOT NULL))),
  constraint operator_check1 CHECK (((totp_step IS NULL) OR (totp_confirmed_at IS NOT NULL))),
  constraint operator_check2 CHECK ((num_nonnulls(oidc_issuer, oidc_subject, oidc_linked_at) = ANY (ARRAY[0, 3]))),
  constraint operator_oidc_issuer_check CHECK (((char_length(oidc_issuer) >= 1) AND (char_length(oidc_issuer) <= 500))),
  constraint operator_oidc_subject_check CHECK (((char_length(oidc_subject) >= 1) AND (char_length(oidc_subject) <= 255))),
  constraint operator_role_check CHECK ((role = ANY (ARRAY['admin'::text, 'operator'::text, 'reviewer'::text, 'viewer'::text]))),
  constraint operator_row_mac_check CHECK ((octet_length(row_mac) = 32)),
  constraint operator_totp_nonce_check CHECK ((octet_length(totp_nonce) = 16))
);
CREATE UNIQUE INDEX operator_oidc ON public.operator USING btree (oidc_issuer, oidc_subject);

create table operator_device_sign_in (
  device_hash bytea not null,
  user_code text not null,
  name text not null,
  address text not null,
  created_at timestamp with time zone default app_now() not null,
  expires_at timestamp with time zone not null,
  denied_at timestamp with time zone,
  token_id text,
  constraint operator_device_sign_in_pkey PRIMARY KEY (device_hash),
  constraint operator_device_sign_in_user_code_key UNIQUE (user_code),
  constraint operator_device_sign_in_token_id_fkey FOREIGN KEY (token_id) REFERENCES operator_token(id),
  constraint operator_device_sign_in_check CHECK (((denied_at IS NULL) OR (token_id IS NULL))),
  constraint operator_device_sign_in_device_hash_check CHECK ((octet_length(device_hash) = 32)),
  constraint operator_device_sign_in_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 255)))
);
CREATE INDEX operator_device_sign_in_expires ON public.operator_device_sign_in USING btree (expires_at);
CREATE INDEX operator_device_sign_in_token ON public.operator_device_sign_in USING btree (token_id) WHERE (token_id IS NOT NULL);

create table operator_mail (
  singleton boolean default true not null,
  listens_until timestamp with time zone not null,
  told_until text not null,
  due_at timestamp with time zone not null,
  sent_at timestamp with time zone,
  failing_since timestamp with time zone,
  failure text,
  constraint operator_mail_pkey PRIMARY KEY (singleton),
  constraint operator_mail_check CHECK (((failing_since IS NULL) = (failure IS NULL))),
  constraint operator_mail_failure_check CHECK ((char_length(failure) <= 300)),
  constraint operator_mail_singleton_check CHECK (singleton)
);

create table operator_oidc_attempt (
  state_hash bytea not null,
  session_id text,
  return_to text not null,
  expires_at timestamp with time zone not null,
  constraint operator_oidc_attempt_pkey PRIMARY KEY (state_hash),
  constraint operator_oidc_attempt_session_id_fkey FOREIGN KEY (session_id) REFERENCES operator_session(id) ON DELETE CASCADE,
  constraint operator_oidc_attempt_return_to_check CHECK ((char_length(return_to) <= 2000)),
  constraint operator_oidc_attempt_state_hash_check CHECK ((octet_length(state_hash) = 32))
);
CREATE INDEX operator_oidc_attempt_expires ON public.operator_oidc_attempt USING btree (expires_at);
CREATE INDEX operator_oidc_attempt_session ON public.operator_oidc_attempt USING btree (session_id) WHERE (session_id IS NOT NULL);

create table operator_recovery_code (
  operator_id text not null,
  hash bytea not null,
  constraint operator_recovery_code_pkey PRIMARY KEY (operator_id, hash),
  constraint operator_recovery_code_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES operator(id),
  constraint operator_recovery_code_hash_check CHECK ((octet_length(hash) = 32))
);

create table operator_session (
  id text not null,
  operator_id text not null,
  token_hash bytea not null,
  created_at timestamp with time zone default app_now() not null,
  seen_at timestamp with time zone default app_now() not null,
  expires_at timestamp with time zone not null,
  stepped_up_at timestamp with time zone,
  address text not null,
  user_agent text not null,
  signed_in_by text default 'password'::text not null,
  row_serial bigint,
  row_mac bytea,
  constraint operator_session_pkey PRIMARY KEY (id),
  constraint operator_session_token_hash_key UNIQUE (token_hash),
  constraint operator_session_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES operator(id),
  constraint operator_session_check CHECK ((expires_at > created_at)),
  constraint operator_session_row_mac_check CHECK ((octet_length(row_mac) = 32)),
  constraint operator_session_signed_in_by_check CHECK ((signed_in_by = ANY (ARRAY['password'::text, 'oidc'::text]))),
  constraint operator_session_token_hash_check CHECK ((octet_length(token_hash) = 32)),
  constraint operator_session_user_agent_check CHECK ((char_length(user_agent) <= 200))
);
CREATE INDEX operator_session_operator ON public.operator_session USING btree (operator_id);

create table operator_throttle (
  name_hash bytea not null,
  failures integer not null,
  blocked_until timestamp with time zone not null,
  last_at timestamp with time zone not null,
  is_unknown boolean default false not null,
  constraint operator_throttle_pkey PRIMARY KEY (name_hash),
  constraint operator_throttle_failures_check CHECK ((failures > 0)),
  constraint operator_throttle_name_hash_check CHECK ((octet_length(name_hash) = 32))
);
CREATE INDEX operator_throttle_last ON public.operator_throttle USING btree (last_at);
CREATE INDEX operator_throttle_unknown ON public.operator_throttle USING btree (last_at) WHERE is_unknown;

create table operator_token (
  id text not null,
  name text not null,
  role text not null,
  token_hash bytea not null,
  operator_id text,
  created_at timestamp with time zone default app_now() not null,
  expires_at timestamp with time zone not null,
  revoked_at timestamp with time zone,
  last_used_at timestamp with time zone,
  row_serial bigint,
  row_mac bytea,
  account_ids text[],
  acts_for text,
  constraint operator_token_pkey PRIMARY KEY (id),
  constraint operator_token_token_hash_key UNIQUE (token_hash),
  constraint operator_token_acts_for_fkey FOREIGN KEY (acts_for) REFERENCES operator(id),
  constraint operator_token_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES operator(id),
  constraint operator_token_account_ids_check CHECK ((cardinality(account_ids) > 0)),
  constraint operator_token_check CHECK ((expires_at > created_at)),
  constraint operator_token_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 255))),
  constraint operator_token_role_check CHECK ((role = ANY (ARRAY['admin'::text, 'operator'::text, 'reviewer'::text, 'viewer'::text]))),
  constraint operator_token_row_mac_check CHECK ((octet_length(row_mac) = 32)),
  constraint operator_token_token_hash_check CHECK ((octet_length(token_hash) = 32))
);
CREATE INDEX operator_token_acts_for ON public.operator_token USING btree (acts_for) WHERE (acts_for IS NOT NULL);
CREATE INDEX operator_token_operator ON public.operator_token USING btree (operator_id) WHERE (operator_id IS NOT NULL);

create table proposal (
  id text not null,
  account_id text not null,
  kind text not null,
  content text not null,
  status text not null,
  proposed_by text,
  confirmed_by text[] default '{}'::text[] not null,
  created_at timestamp with time zone default app_now() not null,
  expires_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  row_serial bigint,
  row_mac bytea,
  constraint proposal_pkey PRIMARY KEY (id),
  constraint proposal_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id),
  constraint proposal_proposed_by_fkey FOREIGN KEY (proposed_by) REFERENCES operator(id),
  constraint proposal_check CHECK ((expires_at > created_at)),
  constraint proposal_check1 CHECK (((ended_at IS NULL) = (status = ANY (ARRAY['open'::text, 'confirmed'::text])))),
  constraint proposal_check2 CHECK (((status <> 'confirmed'::text) OR (kind = 'rebinding'::text))),
  constraint proposal_confirmed_by_check CHECK ((cardinality(confirmed_by) <= 100)),
  constraint proposal_kind_check CHECK ((kind = ANY (ARRAY['documents'::text, 'rebinding'::text]))),
  constraint proposal_row_mac_check CHECK ((octet_length(row_mac) = 32)),
  constraint proposal_status_check CHECK ((status = ANY (ARRAY['open'::text, 'confirmed'::text, 'applied'::text, 'discarded'::text, 'expired'::text, 'stale'::text])))
);
CREATE INDEX proposal_newest ON public.proposal USING btree (created_at DESC, id DESC);
CREATE INDEX proposal_waiting ON public.proposal USING btree (account_id, created_at) WHERE (ended_at IS NULL);

create table review (
  id text not null,
  account_id text not null,
  run_id text not null,
  node_id text not null,
  title bytea not null,
  instructions bytea,
  editable boolean not null,
  records_total bigint not null,
  records_valid bigint not null,
  created_at timestamp with time zone default app_now() not null,
  expires_at timestamp with time zone,
  on_timeout text,
  status text default 'open'::text not null,
  decided_by text,
  decided_at timestamp with time zone,
  reason text,
  constraint review_pkey PRIMARY KEY (id),
  constraint review_account_id_id_key UNIQUE (account_id, id),
  constraint review_run_id_node_id_key UNIQUE (run_id, node_id),
  constraint review_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(id),
  constraint review_check CHECK (((records_valid >= 0) AND (records_valid <= records_total))),
  constraint review_check1 CHECK (((expires_at IS NULL) = (on_timeout IS NULL))),
  constraint review_check2 CHECK (((status = ANY (ARRAY['approved'::text, 'rejected'::text, 'timed_out'::text])) = (decided_at IS NOT NULL))),
  constraint review_check3 CHECK (((decided_by IS NULL) = (decided_at IS NULL))),
  constraint review_check4 CHECK (((status <> 'timed_out'::text) OR (expires_at IS NOT NULL))),
  constraint review_check5 CHECK (((reason IS NULL) OR (decided_at IS NOT NULL))),
  constraint review_on_timeout_check CHECK ((on_timeout = ANY (ARRAY['fail'::text, 'approve'::text]))),
  constraint review_status_check CHECK ((status = ANY (ARRAY['open'::text, 'approved'::text, 'rejected'::text, 'timed_out'::text, 'closed'::text])))
);
CREATE INDEX review_expiring ON public.review USING btree (expires_at) WHERE ((status = 'open'::text) AND (expires_at IS NOT NULL));
CREATE UNIQUE INDEX review_open ON public.review USING btree (run_id) WHERE (status = 'open'::text);
CREATE INDEX review_waiting ON public.review USING btree (account_id, created_at) WHERE (status = 'open'::text);

create table review_change (
  account_id text not null,
  review_id text not null,
  ordinal integer not null,
  change text not null,
  data bytea,
  constraint review_change_pkey PRIMARY KEY (review_id, ordinal),
  constraint review_change_account_id_review_id_fkey FOREIGN KEY (account_id, review_id) REFERENCES review(account_id, id),
  constraint review_change_change_check CHECK ((change = ANY (ARRAY['edited'::text, 'excluded'::text]))),
  constraint review_change_check CHECK (((change = 'edited'::text) = (data IS NOT NULL))),
  constraint review_change_ordinal_check CHECK ((ordinal >= 0))
);

create table review_presence (
  review_id text not null,
  account_id text not null,
  operator_id text not null,
  is_editing boolean not null,
  since timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  constraint review_presence_pkey PRIMARY KEY (review_id, operator_id),
  constraint review_presence_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id),
  constraint review_presence_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES operator(id),
  constraint review_presence_review_id_fkey FOREIGN KEY (review_id) REFERENCES review(id) ON DELETE CASCADE,
  constraint review_presence_times CHECK ((expires_at > since))
) -- unlogged;

create table row_alarm (
  kind text not null,
  id text not null,
  fault text not null,
  first_seen_at timestamp with time zone default app_now() not null,
  last_seen_at timestamp with time zone default app_now() not null,
  constraint row_alarm_pkey PRIMARY KEY (kind, id),
  constraint row_alarm_fault_check CHECK ((fault = ANY (ARRAY['unsigned'::text, 'forged'::text, 'outdated'::text, 'deleted'::text])))
);

create table row_mark (
  kind text not null,
  mac bytea not null,
  signed_at timestamp with time zone default app_now() not null,
  constraint row_mark_pkey PRIMARY KEY (kind),
  constraint row_mark_mac_check CHECK ((octet_length(mac) = 32))
);

create table run (
  id text not null,
  run_key uuid not null,
  account_id text not null,
  blueprint_id text,
  blueprint_version integer,
  api_key_id text,
  name bytea,
  metadata bytea not null,
  ignored_keys bytea not null,
  status text default 'queued'::text not null,
  progress_step text default 'queued'::text not null,
  created_at timestamp with time zone default app_now() not null,
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  deadline_at timestamp with time zone,
  timeout_ms bigint not null,
  retention_ms bigint not null,
  error_kind text,
  error_detail text,
  admitted_at timestamp with time zone,
  lease_owner text,
  lease_epoch integer default 0 not null,
  lost_leases integer default 0 not null,
  response_bytes bigint,
  purged_at timestamp with time zone,
  sequence integer default 1 not null,
  parked_at timestamp with time zone,
  resumed_at timestamp with time zone,
  retries integer default 0 not null,
  waits_for text,
  purge_reason text,
  operator_id text,
  again_of text,
  passed_over smallint default 0 not null,
  not_before timestamp with time zone,
  line text,
  claimed_at timestamp with time zone,
  tally bytea,
  priority smallint default 0 not null,
  expires_at timestamp with time zone,
  schedule_id text,
  constraint run_pkey PRIMARY KEY (id),
  constraint run_run_key_key UNIQUE (run_key),
  constraint run_account_id_blueprint_id_blueprint_version_fkey FOREIGN KEY (account_id, blueprint_id, blueprint_version) REFERENCES blueprint_version(account_id, blueprint_id, version),
  constraint run_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id),
  constraint run_again_of_fkey FOREIGN KEY (again_of) REFERENCES run(id),
  constraint run_api_key_id_fkey FOREIGN KEY (api_key_id) REFERENCES api_key(id),
  constraint run_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES operator(id),
  constraint run_check CHECK (((status = ANY (ARRAY['completed'::text, 'failed'::text, 'cancelled'::text])) = (ended_at IS NOT NULL))),
  constraint run_check1 CHECK (((status = 'failed'::text) = (error_kind IS NOT NULL))),
  constraint run_check10 CHECK (((blueprint_id IS NULL) = (blueprint_version IS NULL))),
  constraint run_check11 CHECK (((blueprint_id IS NOT NULL) OR ((api_key_id IS NULL) AND (again_of IS NULL)))),
  constraint run_check2 CHECK (((status <> 'queued'::text) OR (started_at IS NULL))),
  constraint run_check3 CHECK (((status <> ALL (ARRAY['running'::text, 'completed'::text])) OR (started_at IS NOT NULL))),
  constraint run_check4 CHECK (((started_at IS NULL) OR (ended_at IS NULL) OR (started_at <= ended_at))),
  constraint run_check5 CHECK (((status = 'completed'::text) = (response_bytes IS NOT NULL))),
  constraint run_check6 CHECK (((lease_owner IS NULL) OR (ended_at IS NULL))),
  constraint run_check7 CHECK (((parked_at IS NULL) OR (lease_owner IS NULL))),
  constraint run_check8 CHECK (((parked_at IS NULL) OR (admitted_at IS NULL) OR (ended_at IS NOT NULL))),
  constraint run_check9 CHECK (((purge_reason IS NULL) OR (purged_at IS NOT NULL))),
  constraint run_priority_check CHECK (((priority >= '-10'::integer) AND (priority <= 10))),
  constraint run_purge_reason_check CHECK ((purge_reason = ANY (ARRAY['retention'::text, 'operator'::text]))),
  constraint run_retries_check CHECK ((retries >= 0)),
  constraint run_sequence_check CHECK ((sequence > 0)),
  constraint run_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'running'::text, 'completed'::text, 'failed'::text, 'cancelled'::text]))),
  constraint run_triggered_by CHECK (((num_nonnulls(api_key_id, operator_id, schedule_id) = 1) OR ((api_key_id IS NULL) AND (schedule_id IS NULL) AND ((again_of IS NOT NULL) OR (blueprint_id IS NULL))))) NOT VALID
);
CREATE INDEX run_account ON public.run USING btree (account_id, created_at);
CREATE INDEX run_active ON public.run USING btree (account_id, id) WHERE ((admitted_at IS NOT NULL) AND (ended_at IS NULL));
CREATE INDEX run_again ON public.run USING btree (again_of) WHERE (again_of IS NOT NULL);
CREATE INDEX run_blocked_in_turn ON public.run USING btree (account_id, waits_for, (
CASE
    WHEN (resumed_at IS NULL) THEN (11 - priority)
    ELSE 0
END), COALESCE(resumed_at, created_at), id) WHERE ((admitted_at IS NULL) AND (ended_at IS NULL) AND (parked_at IS NULL) AND (waits_for IS NOT NULL));
CREATE INDEX run_blueprint ON public.run USING btree (blueprint_id, created_at, id);
CREATE INDEX run_leased ON public.run USING btree (lease_owner) WHERE ((lease_owner IS NOT NULL) AND (admitted_at IS NOT NULL));
CREATE INDEX run_line ON public.run USING btree (line, ((parked_at IS NULL)), created_at, id) WHERE ((line IS NOT NULL) AND (ended_at IS NULL));
CREATE INDEX run_list ON public.run USING btree (created_at, id);
CREATE INDEX run_metadata ON public.run USING gin (run_metadata_pairs(metadata)) WHERE (metadata <> '\x7b7d'::bytea);
CREATE INDEX run_name ON public.run USING btree (name) WHERE (name IS NOT NULL);
CREATE INDEX run_parked ON public.run USING btree (account_id, parked_at) WHERE ((parked_at IS NOT NULL) AND (ended_at IS NULL));
CREATE INDEX run_purge ON public.run USING btree (((((EXTRACT(epoch FROM (ended_at AT TIME ZONE 'UTC'::text)) * (1000)::numeric))::bigint + retention_ms))) WHERE ((ended_at IS NOT NULL) AND (purged_at IS NULL));
CREATE INDEX run_resumed ON public.run USING btree (account_id, resumed_at, id) WHERE ((admitted_at IS NULL) AND (ended_at IS NULL) AND (parked_at IS NULL) AND (resumed_at IS NOT NULL) AND (waits_for IS NULL));
CREATE INDEX run_unusual ON public.run USING btree (status, created_at, id) WHERE (status <> 'completed'::text);
CREATE INDEX run_waiting_in_turn ON public.run USING btree (account_id, priority DESC, created_at, id) WHERE ((admitted_at IS NULL) AND (ended_at IS NULL) AND (parked_at IS NULL) AND (resumed_at IS NULL) AND (waits_for IS NULL));

create table run_credential (
  account_id text not null,
  run_id text not null,
  slot text not null,
  credential_id text not null,
  strategy_id text not null,
  strategy_version integer not null,
  concurrency integer,
  constraint run_credential_pkey PRIMARY KEY (run_id, slot),
  constraint run_credential_account_id_strategy_id_strategy_version_fkey FOREIGN KEY (account_id, strategy_id, strategy_version) REFERENCES strategy_version(account_id, strategy_id, version),
  constraint run_credential_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(id)
);
CREATE INDEX run_credential_credential ON public.run_credential USING btree (credential_id);

create table run_group (
  run_id text not null,
  account_id text not null,
  blueprint_id text not null,
  name text not null,
  constraint run_group_pkey PRIMARY KEY (run_id),
  constraint run_group_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(id)
);

create table run_input (
  account_id text not null,
  run_id text not null,
  ref_key text not null,
  kind text not null,
  content bytea,
  blob_key text,
  filename bytea,
  content_type bytea,
  constraint run_input_pkey PRIMARY KEY (run_id, ref_key),
  constraint run_input_blob_key_fkey FOREIGN KEY (blob_key) REFERENCES blob(key),
  constraint run_input_check CHECK (((kind = 'file'::text) = (blob_key IS NOT NULL))),
  constraint run_input_check1 CHECK (((kind = 'file'::text) = (content IS NULL))),
  constraint run_input_kind_check CHECK ((kind = ANY (ARRAY['text'::text, 'json'::text, 'file'::text])))
);
CREATE INDEX run_input_blob ON public.run_input USING btree (blob_key) WHERE (blob_key IS NOT NULL);

create table run_poll (
  account_id text not null,
  run_id text not null,
  node_id text not null,
  ordinal integer not null,
  began_at timestamp with time zone default app_now() not null,
  asked_at timestamp with time zone default app_now() not null,
  asks integer default 1 not null,
  wakes_at timestamp with time zone,
  constraint run_poll_pkey PRIMARY KEY (run_id, node_id, ordinal),
  constraint run_poll_asks_check CHECK ((asks > 0)),
  constraint run_poll_ordinal_check CHECK ((ordinal >= 0))
);
CREATE INDEX run_poll_wakes ON public.run_poll USING btree (wakes_at) WHERE (wakes_at IS NOT NULL);

create table run_result (
  account_id text not null,
  run_id text not null,
  ordinal integer not null,
  key text not null,
  total_records bigint not null,
  json_bytes bigint not null,
  blob_key text,
  content bytea,
  constraint run_result_pkey PRIMARY KEY (run_id, key),
  constraint run_result_blob_key_fkey FOREIGN KEY (blob_key) REFERENCES blob(key),
  constraint run_result_check CHECK (((content IS NULL) <> (blob_key IS NULL)))
);
CREATE INDEX run_result_blob ON public.run_result USING btree (blob_key) WHERE (blob_key IS NOT NULL);

create table run_search (
  run_id text not null,
  account_id text not null,
  created_at timestamp with time zone not null,
  text text not null,
  grams integer[] not null,
  constraint run_search_pkey PRIMARY KEY (run_id),
  constraint run_search_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id),
  constraint run_search_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(id)
);
CREATE INDEX run_search_account ON public.run_search USING btree (account_id);
CREATE INDEX run_search_grams ON public.run_search USING gin (grams);
CREATE INDEX run_search_list ON public.run_search USING btree (created_at, run_id);

create table run_search_progress (
  one boolean default true not null,
  searched_to timestamp with time zone not null,
  constraint run_search_progress_pkey PRIMARY KEY (one),
  constraint run_search_progress_one_check CHECK (one)
);

create table run_step (
  account_id text not null,
  run_id text not null,
  node_id text not null,
  status text not null,
  epoch integer not null,
  attempts integer default 1 not null,
  started_at timestamp with time zone default app_now() not null,
  ended_at timestamp with time zone,
  output_kind text,
  blob_key text,
  records_total bigint,
  records_valid bigint,
  error_detail text,
  log bytea,
  source_blob_key text,
  output bytea,
  filename bytea,
  content_type bytea,
  turns_total bigint,
  tally bytea,
  constraint run_step_pkey PRIMARY KEY (run_id, node_id),
  constraint run_step_blob_key_fkey FOREIGN KEY (blob_key) REFERENCES blob(key),
  constraint run_step_source_blob_key_fkey FOREIGN KEY (source_blob_key) REFERENCES blob(key),
  constraint run_step_check CHECK (((status = 'started'::text) = (ended_at IS NULL))),
  constraint run_step_check1 CHECK (((output IS NULL) OR (blob_key IS NULL))),
  constraint run_step_check2 CHECK (((output_kind = 'file'::text) OR ((filename IS NULL) AND (content_type IS NULL)))),
  constraint run_step_output_kind_check CHECK ((output_kind = ANY (ARRAY['records'::text, 'text'::text, 'json'::text, 'file'::text, 'absent'::text]))),
  constraint run_step_status_check CHECK ((status = ANY (ARRAY['started'::text, 'done'::text, 'failed'::text])))
);
CREATE INDEX run_step_blob ON public.run_step USING btree (blob_key) WHERE (blob_key IS NOT NULL);
CREATE INDEX run_step_source_blob ON public.run_step USING btree (source_blob_key) WHERE (source_blob_key IS NOT NULL);

create table run_timer (
  run_id text not null,
  kind text not null,
  at timestamp with time zone not null,
  constraint run_timer_pkey PRIMARY KEY (run_id, kind),
  constraint run_timer_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(id),
  constraint run_timer_kind_check CHECK ((kind = ANY (ARRAY['begin'::text, 'expire'::text])))
);
CREATE INDEX run_timer_at ON public.run_timer USING btree (at);

create table run_trace (
  run_id text not null,
  traceparent text not null,
  constraint run_trace_pkey PRIMARY KEY (run_id),
  constraint run_trace_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(id),
  constraint run_trace_traceparent_check CHECK ((traceparent ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$'::text))
);

create table run_turn (
  account_id text not null,
  run_id text not null,
  node_id text not null,
  ordinal integer not null,
  epoch integer not null,
  ended_at timestamp with time zone default app_now() not null,
  output_kind text not null,
  output bytea,
  blob_key text,
  filename bytea,
  content_type bytea,
  constraint run_turn_pkey PRIMARY KEY (run_id, node_id, ordinal),
  constraint run_turn_blob_key_fkey FOREIGN KEY (blob_key) REFERENCES blob(key) ON DELETE CASCADE,
  constraint run_turn_check CHECK ((num_nonnulls(output, blob_key) = ((output_kind <> 'absent'::text))::integer)),
  constraint run_turn_ordinal_check CHECK ((ordinal >= 0)),
  constraint run_turn_output_kind_check CHECK ((output_kind = ANY (ARRAY['records'::text, 'text'::text, 'json'::text, 'file'::text, 'absent'::text])))
);
CREATE INDEX run_turn_blob ON public.run_turn USING btree (blob_key) WHERE (blob_key IS NOT NULL);

create table run_write (
  account_id text not null,
  run_id text not null,
  node_id text not null,
  ordinal integer not null,
  status text not null,
  epoch integer not null,
  attempts integer default 1 not null,
  started_at timestamp with time zone default app_now() not null,
  ended_at timestamp with time zone,
  outcome bytea,
  detail text,
  decided_by text,
  decided_at timestamp with time zone,
  sent text,
  constraint run_write_pkey PRIMARY KEY (run_id, node_id, ordinal),
  constraint run_write_check CHECK (((status = 'done'::text) = (outcome IS NOT NULL))),
  constraint run_write_check1 CHECK (((status = 'started'::text) = (ended_at IS NULL))),
  constraint run_write_check2 CHECK (((decided_by IS NULL) = (decided_at IS NULL))),
  constraint run_write_ordinal_check CHECK ((ordinal >= 0)),
  constraint run_write_status_check CHECK ((status = ANY (ARRAY['started'::text, 'done'::text, 'refused'::text, 'in_doubt'::text, 'ruled_out'::text])))
);
CREATE INDEX run_write_in_doubt ON public.run_write USING btree (account_id, run_id) WHERE (status = 'in_doubt'::text);

create table schedule (
  id text not null,
  account_id text not null,
  key text not null,
  blueprint_id text not null,
  cron text not null,
  time_zone text not null,
  missed text not null,
  overlap text not null,
  trigger bytea not null,
  next_at timestamp with time zone,
  queued_at timestamp with time zone,
  look_at timestamp with time zone,
  paused_reason text,
  paused_detail text,
  paused_at timestamp with time zone,
  created_at timestamp with time zone default app_now() not null,
  updated_at timestamp with time zone default app_now() not null,
  is_from_document boolean default false not null,
  jitter text default '0'::text not null,
  constraint schedule_pkey PRIMARY KEY (id),
  constraint schedule_account_id_key_key UNIQUE (account_id, key),
  constraint schedule_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id),
  constraint schedule_blueprint_id_fkey FOREIGN KEY (blueprint_id) REFERENCES blueprint(id),
  constraint schedule_check CHECK (((paused_reason IS NULL) = (next_at IS NOT NULL))),
  constraint schedule_check1 CHECK (((paused_reason IS NULL) = (look_at IS NOT NULL))),
  constraint schedule_check2 CHECK (((paused_reason IS NULL) = (paused_at IS NULL))),
  constraint schedule_check3 CHECK (((paused_reason IS NULL) OR (queued_at IS NULL))),
  constraint schedule_jitter_check CHECK ((jitter ~ '^(0|\d{1,9}(\.\d{1,3})?(ms|s|m|h|d))$'::text)),
  constraint schedule_key_check CHECK ((key ~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$'::text)),
  constraint schedule_missed_check CHECK ((missed = ANY (ARRAY['skip'::text, 'once'::text, 'all'::text]))),
  constraint schedule_overlap_check CHECK ((overlap = ANY (ARRAY['skip'::text, 'queue'::text, 'cancel'::text]))),
  constraint schedule_paused_detail_check CHECK ((char_length(paused_detail) <= 500)),
  constraint schedule_paused_reason_check CHECK ((paused_reason = ANY (ARRAY['credential_deleted'::text, 'blueprint_retired'::text, 'refused'::text, 'ended'::text, 'operator'::text]))),
  constraint schedule_trigger_check CHECK ((octet_length(trigger) <= 65536))
);
CREATE INDEX schedule_look ON public.schedule USING btree (look_at) WHERE (look_at IS NOT NULL);
CREATE INDEX schedule_of_document ON public.schedule USING btree (blueprint_id) WHERE is_from_document;

create table schedule_credential (
  schedule_id text not null,
  credential_id text not null,
  constraint schedule_credential_pkey PRIMARY KEY (schedule_id, credential_id),
  constraint schedule_credential_schedule_id_fkey FOREIGN KEY (schedule_id) REFERENCES schedule(id) ON DELETE CASCADE
);
CREATE INDEX schedule_credential_credential ON public.schedule_credential USING btree (credential_id);

create table schedule_fire (
  schedule_id text not null,
  due_at timestamp with time zone not null,
  outcome text not null,
  run_id text,
  fired_at timestamp with time zone default app_now() not null,
  constraint schedule_fire_pkey PRIMARY KEY (schedule_id, due_at),
  constraint schedule_fire_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(id),
  constraint schedule_fire_schedule_id_fkey FOREIGN KEY (schedule_id) REFERENCES schedule(id) ON DELETE CASCADE,
  constraint schedule_fire_check CHECK (((outcome = ANY (ARRAY['run'::text, 'manual'::text])) = (run_id IS NOT NULL))) NOT VALID,
  constraint schedule_fire_outcome_check CHECK ((outcome = ANY (ARRAY['run'::text, 'manual'::text, 'missed'::text, 'overlap'::text, 'credential_locked'::text, 'refused'::text]))) NOT VALID
);
CREATE INDEX schedule_fire_fired ON public.schedule_fire USING btree (fired_at);
CREATE INDEX schedule_fire_run ON public.schedule_fire USING btree (run_id) WHERE (run_id IS NOT NULL);

create table schedule_open_run (
  run_id text not null,
  schedule_id text not null,
  constraint schedule_open_run_pkey PRIMARY KEY (run_id),
  constraint schedule_open_run_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(id),
  constraint schedule_open_run_schedule_id_fkey FOREIGN KEY (schedule_id) REFERENCES schedule(id) ON DELETE CASCADE
);
CREATE INDEX schedule_open_run_schedule ON public.schedule_open_run USING btree (schedule_id);

create table schema_migration (
  version integer not null,
  name text not null,
  sha256 text not null,
  applied_at timestamp with time zone default now() not null,
  compatible_back_to integer,
  constraint schema_migration_pkey PRIMARY KEY (version)
);

create table strategy (
  account_id text not null,
  id text not null,
  current_version integer not null,
  retired boolean not null,
  row_serial bigint,
  row_mac bytea,
  constraint strategy_pkey PRIMARY KEY (account_id, id),
  constraint strategy_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id),
  constraint strategy_account_id_id_current_version_fkey FOREIGN KEY (account_id, id, current_version) REFERENCES strategy_version(account_id, strategy_id, version) DEFERRABLE INITIALLY DEFERRED,
  constraint strategy_row_mac_check CHECK ((octet_length(row_mac) = 32))
);

create table strategy_version (
  account_id text not null,
  strategy_id text not null,
  version integer not null,
  document text not null,
  created_at timestamp with time zone default app_now() not null,
  operator_id text,
  row_serial bigint,
  row_mac bytea,
  constraint strategy_version_pkey PRIMARY KEY (account_id, strategy_id, version),
  constraint strategy_version_account_id_strategy_id_fkey FOREIGN KEY (account_id, strategy_id) REFERENCES strategy(account_id, id) DEFERRABLE INITIALLY DEFERRED,
  constraint strategy_version_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES operator(id),
  constraint strategy_version_row_mac_check CHECK ((octet_length(row_mac) = 32))
);

create table throttle_slot (
  account_id text not null,
  blueprint_id text not null,
  node_id text not null,
  next_at timestamp with time zone not null,
  spacing_ms double precision,
  constraint throttle_slot_pkey PRIMARY KEY (account_id, blueprint_id, node_id),
  constraint throttle_slot_spacing_ms_check CHECK ((spacing_ms > (0)::double precision))
);

create table totp_use (
  credential_id text not null,
  field_key text not null,
  step bigint not null,
  used_at timestamp with time zone default app_now() not null,
  constraint totp_use_pkey PRIMARY KEY (credential_id, field_key, step),
  constraint totp_use_credential_id_fkey FOREIGN KEY (credential_id) REFERENCES credential(id) ON DELETE CASCADE
);

create table two_person_rule (
  account_id text not null,
  is_on boolean not null,
  row_serial bigint,
  row_mac bytea,
  constraint two_person_rule_pkey PRIMARY KEY (account_id),
  constraint two_person_rule_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id),
  constraint two_person_rule_row_mac_check CHECK ((octet_length(row_mac) = 32))
);

create table vault_key (
  kid text not null,
  public_jwk text not null,
  sentinel bytea not null,
  is_primary boolean not null,
  created_at timestamp with time zone default app_now() not null,
  demoted_at timestamp with time zone,
  row_serial bigint,
  row_mac bytea,
  constraint vault_key_pkey PRIMARY KEY (kid),
  constraint vault_key_row_mac_check CHECK ((octet_length(row_mac) = 32))
);
CREATE UNIQUE INDEX vault_key_one_primary ON public.vault_key USING btree (is_primary) WHERE is_primary;

create table webhook_attempt (
  endpoint_id text not null,
  event_id text not null,
  number integer not null,
  began_at timestamp with time zone not null,
  duration_ms integer not null,
  status integer,
  failure text,
  answer text default ''::text not null,
  constraint webhook_attempt_pkey PRIMARY KEY (endpoint_id, event_id, number),
  constraint webhook_attempt_answer_check CHECK ((char_length(answer) <= 1024)),
  constraint webhook_attempt_check CHECK (((status IS NULL) = (failure IS NOT NULL))),
  constraint webhook_attempt_duration_ms_check CHECK ((duration_ms >= 0)),
  constraint webhook_attempt_failure_check CHECK ((char_length(failure) <= 300)),
  constraint webhook_attempt_number_check CHECK ((number > 0))
);

create table webhook_claim (
  id bigint generated always as identity not null,
  endpoint_id text not null,
  event_ids text[] not null,
  ends_at timestamp with time zone not null,
  worker_id text,
  constraint webhook_claim_pkey PRIMARY KEY (id),
  constraint webhook_claim_event_ids_check CHECK ((cardinality(event_ids) > 0))
);
CREATE INDEX webhook_claim_endpoint ON public.webhook_claim USING btree (endpoint_id);

create table webhook_delivery (
  endpoint_id text not null,
  event_id text not null,
  attempts integer default 0 not null,
  due_at timestamp with time zone,
  tries integer default 0 not null,
  delivered_at timestamp with time zone,
  failed_at timestamp with time zone,
  constraint webhook_delivery_pkey PRIMARY KEY (endpoint_id, event_id),
  constraint webhook_delivery_attempts_check CHECK ((attempts >= 0)),
  constraint webhook_delivery_check CHECK ((num_nonnulls(due_at, delivered_at, failed_at) = 1)),
  constraint webhook_delivery_tries_check CHECK ((tries >= 0))
);
CREATE INDEX webhook_delivery_due ON public.webhook_delivery USING btree (endpoint_id, due_at) WHERE (due_at IS NOT NULL);

create table webhook_endpoint (
  id text not null,
  account_id text,
  url text not null,
  description text default ''::text not null,
  events text[] not null,
  created_at timestamp with time zone default app_now() not null,
  disabled_at timestamp with time zone,
  disabled_reason text,
  failing_since timestamp with time zone,
  is_from_document boolean default false not null,
  constraint webhook_endpoint_pkey PRIMARY KEY (id),
  constraint webhook_endpoint_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id),
  constraint webhook_endpoint_check CHECK (((disabled_at IS NULL) = (disabled_reason IS NULL))),
  constraint webhook_endpoint_description_check CHECK ((char_length(description) <= 200)),
  constraint webhook_endpoint_disabled_reason_check CHECK ((disabled_reason = ANY (ARRAY['operator'::text, 'gone'::text, 'failing'::text]))),
  constraint webhook_endpoint_document_check CHECK (((account_id IS NOT NULL) OR (NOT is_from_document))),
  constraint webhook_endpoint_events_check CHECK (((cardinality(events) >= 1) AND (cardinality(events) <= 30))),
  constraint webhook_endpoint_url_check CHECK (((char_length(url) >= 1) AND (char_length(url) <= 2000)))
);
CREATE INDEX webhook_endpoint_account ON public.webhook_endpoint USING btree (account_id);
CREATE UNIQUE INDEX webhook_endpoint_of_document ON public.webhook_endpoint USING btree (account_id, url) WHERE is_from_document;

create table webhook_event (
  id text not null,
  account_id text,
  type text not null,
  subject_id text not null,
  occurred_at timestamp with time zone not null,
  data jsonb not null,
  constraint webhook_event_pkey PRIMARY KEY (id)
);

create table webhook_secret (
  id text not null,
  account_id text,
  endpoint_id text not null,
  sealed bytea not null,
  kid text not null,
  created_at timestamp with time zone default app_now() not null,
  ends_at timestamp with time zone,
  constraint webhook_secret_pkey PRIMARY KEY (id),
  constraint webhook_secret_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id),
  constraint webhook_secret_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES webhook_endpoint(id),
  constraint webhook_secret_kid_fkey FOREIGN KEY (kid) REFERENCES vault_key(kid),
  constraint webhook_secret_sealed_check CHECK ((octet_length(sealed) > 0))
);
CREATE INDEX webhook_secret_endpoint ON public.webhook_secret USING btree (endpoint_id);
CREATE INDEX webhook_secret_kid ON public.webhook_secret USING btree (kid);

create table worker (
  id text not null,
  lock_key bigint not null,
  pool_ids text[] default '{}'::text[] not null,
  hostname text not null,
  pid integer not null,
  started_at timestamp with time zone default app_now() not null,
  heartbeat_at timestamp with time zone default app_now() not null,
  beats bigint default 0 not null,
  server text default ''::text not null,
  browsers integer,
  own_browser_networks boolean,
  constraint worker_pkey PRIMARY KEY (id),
  constraint worker_lock_key_key UNIQUE (lock_key),
  constraint worker_browsers CHECK ((browsers >= 0))
);

CREATE OR REPLACE FUNCTION public.app_now()
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE
RETURN date_trunc('milliseconds'::text, statement_timestamp());

CREATE OR REPLACE FUNCTION public.audit_entry_guard()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op = 'UPDATE' then
    if old.sequence is null and new.sequence is not null
       and (old.id, old.occurred_at, old.actor_kind, old.action, old.subject_id, old.detail, old.seal)
         = (new.id, new.occurred_at, new.actor_kind, new.action, new.subject_id, new.detail, new.seal)
       and (old.account_id, old.actor_id, old.run_id) is not distinct from (new.account_id, new.actor_id, new.run_id)
    then
      return new;
    end if;
  elsif tg_op = 'DELETE' then
    if exists (select from audit_month where chain = old.chain and old.sequence between first and last) then
      return old;
    end if;
  end if;
  raise exception 'The audit log is append-only: % of audit_entry is refused', tg_op using errcode = 'insufficient_privilege';
end $function$;

CREATE OR REPLACE FUNCTION public.close_reviews()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  update review set status = 'closed' where run_id = new.id and status = 'open';
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.doubt_writes_under_way()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  -- The statement may have waited for whoever began the write.
  update run_write set status = 'in_doubt', ended_at = greatest(app_now(), started_at),
    detail = 'the run ended while it was under way'
  where run_id = new.id and status = 'started';
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.new_event_id()
 RETURNS text
 LANGUAGE sql
RETURN (('msg_'::text || lpad(to_hex(((EXTRACT(epoch FROM app_now()) * (1000)::numeric))::bigint), 12, '0'::text)) || substr(replace((gen_random_uuid())::text, '-'::text, ''::text), 1, 20));

CREATE OR REPLACE FUNCTION public.note_credential_event()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  content jsonb := jsonb_build_object('id', old.id, 'strategyId', old.strategy_id);
begin
  if tg_op = 'DELETE' then
    perform note_event(old.account_id, 'credential.deleted', old.id, content);
    return null;
  end if;
  if new.login_rejections > old.login_rejections then
    perform note_event(new.account_id, 'credential.needs_attention', new.id, content);
  end if;
  if new.login_locked_until is not null and new.login_locked_until is distinct from old.login_locked_until then
    perform note_event(new.account_id, 'credential.locked', new.id, content);
  end if;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.note_dead_endpoint_for_operators()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform note_operator_event('operator.webhook_disabled', new.account_id, new.id,
    jsonb_build_object('webhookId', new.id, 'reason', new.disabled_reason));
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.note_embedded_session_event()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  state text := case when new.status = 'completed' then 'completed' else 'expired' end;
begin
  perform note_event(new.account_id, 'embedded_credential_session.' || state, new.id,
    jsonb_build_object('id', new.id, 'status', state, 'origin', new.origin, 'blueprintKeys', new.blueprint_keys,
      'selectedBlueprintKey', new.selected_blueprint_key, 'credentialId', new.credential_id,
      'credentialIds', (select coalesce(json_object_agg(slot.slot, slot.credential_id order by slot.slot_position), '{}')
        from credential_session slot where slot.account_id = new.account_id and slot.embedded_session_id = new.id
          and slot.blueprint_key = new.selected_blueprint_key and slot.credential_id is not null),
      'expiresAt', new.expires_at, 'completedAt', new.completed_at, 'createdAt', new.created_at));
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.note_event(of_account text, of_type text, of_subject text, content jsonb)
 RETURNS text
 LANGUAGE plpgsql
AS $function$
declare
  new_id text;
  subscriptions text[] := array['*', split_part(of_type, '.', 1) || '.*', of_type];
begin
  if not exists (select from webhook_endpoint
      where account_id = of_account and disabled_at is null and events && subscriptions)
    and not exists (select from event_listener where account_id = of_account and ends_at > app_now()) then
    return null;
  end if;
  new_id := new_event_id();
  insert into webhook_event (id, account_id, type, subject_id, occurred_at, data)
    values (new_id, of_account, of_type, of_subject, app_now(), content);
  insert into webhook_delivery (endpoint_id, event_id, due_at)
    select id, new_id, app_now() from webhook_endpoint
    where account_id = of_account and disabled_at is null and events && subscriptions;
  return new_id;
end
$function$;

CREATE OR REPLACE FUNCTION public.note_lock_for_operators()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform note_operator_event('operator.credential_locked', new.account_id, new.id,
    jsonb_build_object('credentialId', new.id, 'strategyId', new.strategy_id));
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.note_operator_event(of_type text, of_account text, of_subject text, content jsonb)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  new_id text;
  subscriptions text[] := array['*', split_part(of_type, '.', 1) || '.*', of_type];
begin
  if not exists (select from webhook_endpoint
      where account_id is null and disabled_at is null and events && subscriptions)
    and not exists (select from operator_mail where listens_until > app_now())
    or exists (select from account where id = of_account and test_of is not null) then
    return;
  end if;
  new_id := new_event_id();
  insert into webhook_event (id, account_id, type, subject_id, occurred_at, data)
    values (new_id, null, of_type, of_subject, app_now(),
      content || jsonb_build_object('account', (select slug from account where id = of_account)));
  insert into webhook_delivery (endpoint_id, event_id, due_at)
    select id, new_id, app_now() from webhook_endpoint
    where account_id is null and disabled_at is null and events && subscriptions;
end
$function$;

CREATE OR REPLACE FUNCTION public.note_review_for_operators()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform note_operator_event('operator.review_waiting', new.account_id, new.id,
    jsonb_build_object('reviewId', new.id, 'runId', new.run_id, 'blueprint', (select blueprint.key from run
      join blueprint on blueprint.id = run.blueprint_id where run.id = new.run_id)));
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.note_run_events()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if not exists (select from webhook_endpoint where disabled_at is null)
    and not exists (select from event_listener where ends_at > app_now()) then
    return null;
  end if;
  with change as (
    select now.account_id, now.id, 'run.' || case
        when was.purged_at is null and now.purged_at is not null then 'purged'
        when now.progress_step = 'awaiting_review' then 'awaiting_review'
        when now.status = 'running' then 'started'
        else now.status end as type,
      jsonb_build_object('id', now.id, 'runKey', now.run_key, 'status', now.status, 'progressStep', now.progress_step,
        'createdAt', now.created_at, 'startedAt', now.started_at, 'endedAt', now.ended_at, 'blueprintId', now.blueprint_id) as data
    from before as was join after as now on now.id = was.id
    where now.blueprint_id is not null
      and (was.status is distinct from now.status
        or (now.progress_step = 'awaiting_review' and was.progress_step is distinct from now.progress_step)
        or (was.purged_at is null and now.purged_at is not null))),
  event as (
    insert into webhook_event (id, account_id, type, subject_id, occurred_at, data)
    select new_event_id(), account_id, type, id, app_now(), data from change
    where exists (select from webhook_endpoint endpoint where endpoint.account_id = change.account_id and disabled_at is null
        and events && array['*', 'run.*', change.type])
      or exists (select from event_listener listener where listener.account_id = change.account_id and ends_at > app_now())
    returning id, account_id, type)
  insert into webhook_delivery (endpoint_id, event_id, due_at)
  select endpoint.id, event.id, app_now() from event join webhook_endpoint endpoint on endpoint.account_id = event.account_id
  where disabled_at is null and events && array['*', 'run.*', event.type];
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.note_session_event()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  state text := case when new.status = 'completed' then 'completed' else 'expired' end;
begin
  perform note_event(new.account_id, 'credential_session.' || state, new.id,
    jsonb_build_object('id', new.id, 'status', state, 'returnUrl', new.return_url, 'strategyId', new.strategy_id,
      'credentialId', new.credential_id, 'expiresAt', new.expires_at, 'completedAt', new.completed_at, 'createdAt', new.created_at,
      'metadata', new.metadata, 'cancelUrl', new.cancel_url));
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.note_write_for_operators()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if not exists (select from run_write where run_id = new.run_id and node_id = new.node_id and status = 'in_doubt'
      and ordinal < new.ordinal) then
    perform note_operator_event('operator.write_uncertain', new.account_id, new.run_id,
      jsonb_build_object('runId', new.run_id, 'node', new.node_id, 'blueprint', (select blueprint.key from run
        join blueprint on blueprint.id = run.blueprint_id where run.id = new.run_id)));
  end if;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.raise_run_sequence()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  new.sequence := old.sequence + 1;
  return new;
end
$function$;

CREATE OR REPLACE FUNCTION public.run_metadata_pairs(metadata bytea)
 RETURNS bigint[]
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE
AS $function$
begin
  return array(select hashtextextended(key || '=' || value::text, 0) from json_each(convert_from(metadata, 'UTF8')::json));
exception when others then
  return '{}';
end
$function$;

CREATE TRIGGER audit_entry_append_only BEFORE DELETE OR UPDATE ON public.audit_entry FOR EACH ROW EXECUTE FUNCTION audit_entry_guard();

CREATE TRIGGER audit_entry_no_truncate BEFORE TRUNCATE ON public.audit_entry FOR EACH STATEMENT EXECUTE FUNCTION audit_entry_guard();

CREATE TRIGGER credential_deleted_event AFTER DELETE ON public.credential FOR EACH ROW WHEN ((old.candidate_at IS NULL)) EXECUTE FUNCTION note_credential_event();

CREATE TRIGGER credential_login_event AFTER UPDATE OF login_rejections, login_locked_until ON public.credential FOR EACH ROW WHEN (((new.candidate_at IS NULL) AND ((new.login_rejections > old.login_rejections) OR (new.login_locked_until IS DISTINCT FROM old.login_locked_until)))) EXECUTE FUNCTION note_credential_event();

CREATE TRIGGER lock_for_operators AFTER UPDATE OF login_locked_until ON public.credential FOR EACH ROW WHEN (((new.candidate_at IS NULL) AND (new.login_locked_until IS NOT NULL) AND (new.login_locked_until IS DISTINCT FROM old.login_locked_until))) EXECUTE FUNCTION note_lock_for_operators();

CREATE TRIGGER credential_session_event AFTER UPDATE OF status, expiry_noted_at ON public.credential_session FOR EACH ROW WHEN (((new.embedded_session_id IS NULL) AND ((old.status IS DISTINCT FROM new.status) OR ((old.expiry_noted_at IS NULL) AND (new.expiry_noted_at IS NOT NULL))))) EXECUTE FUNCTION note_session_event();

CREATE TRIGGER embedded_session_event AFTER UPDATE OF status, expiry_noted_at ON public.embedded_credential_session FOR EACH ROW WHEN (((old.status IS DISTINCT FROM new.status) OR ((old.expiry_noted_at IS NULL) AND (new.expiry_noted_at IS NOT NULL)))) EXECUTE FUNCTION note_embedded_session_event();

CREATE TRIGGER review_for_operators AFTER INSERT ON public.review FOR EACH ROW WHEN ((new.status = 'open'::text)) EXECUTE FUNCTION note_review_for_operators();

CREATE TRIGGER run_ended_closes_reviews AFTER UPDATE OF ended_at ON public.run FOR EACH ROW WHEN (((old.ended_at IS NULL) AND (new.ended_at IS NOT NULL) AND (new.parked_at IS NOT NULL))) EXECUTE FUNCTION close_reviews();

CREATE TRIGGER run_events AFTER UPDATE ON public.run REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION note_run_events();

CREATE TRIGGER run_sequence BEFORE UPDATE OF status, progress_step ON public.run FOR EACH ROW WHEN (((old.status IS DISTINCT FROM new.status) OR (old.progress_step IS DISTINCT FROM new.progress_step))) EXECUTE FUNCTION raise_run_sequence();

CREATE TRIGGER run_writes_under_way AFTER UPDATE OF ended_at ON public.run FOR EACH ROW WHEN (((old.ended_at IS NULL) AND (new.ended_at IS NOT NULL) AND (new.status <> 'completed'::text))) EXECUTE FUNCTION doubt_writes_under_way();

CREATE TRIGGER write_for_operators AFTER UPDATE OF status ON public.run_write FOR EACH ROW WHEN (((new.status = 'in_doubt'::text) AND (old.status <> 'in_doubt'::text))) EXECUTE FUNCTION note_write_for_operators();

CREATE TRIGGER dead_endpoint_for_operators AFTER UPDATE OF disabled_at ON public.webhook_endpoint FOR EACH ROW WHEN (((old.disabled_at IS NULL) AND (new.disabled_reason = ANY (ARRAY['gone'::text, 'failing'::text])))) EXECUTE FUNCTION note_dead_endpoint_for_operators();

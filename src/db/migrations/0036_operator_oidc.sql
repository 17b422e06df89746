-- Single sign-on of operators (design, page 6, 5.10). Who somebody is at the provider is its issuer and its name for them, never an
-- address of mail, which can pass to somebody else.
alter table operator
  add column oidc_issuer text check (char_length(oidc_issuer) between 1 and 500),
  add column oidc_subject text check (char_length(oidc_subject) between 1 and 255),
  add column oidc_linked_at timestamptz,
  add check (num_nonnulls(oidc_issuer, oidc_subject, oidc_linked_at) in (0, 3));
create unique index operator_oidc on operator (oidc_issuer, oidc_subject);

alter table operator_session add column signed_in_by text not null default 'password' check (signed_in_by in ('password', 'oidc'));

-- A browser that has left for the provider. Its row goes when it is back: a `state` counts once.
create table operator_oidc_attempt (
  state_hash bytea primary key check (octet_length(state_hash) = 32),
  -- Of the session that is to be confirmed; null: a sign-in.
  session_id text references operator_session (id) on delete cascade,
  -- The page that was asked for.
  return_to text not null check (char_length(return_to) <= 2000),
  expires_at timestamptz not null
);
create index operator_oidc_attempt_session on operator_oidc_attempt (session_id) where session_id is not null;
create index operator_oidc_attempt_expires on operator_oidc_attempt (expires_at);

-- Who has a review open in the dashboard, and until when that counts. Unlogged: after a crash, open pages announce themselves again.
create unlogged table review_presence (
  review_id text not null references review (id) on delete cascade,
  account_id text not null references account (id),
  operator_id text not null references operator (id),
  is_editing boolean not null,
  since timestamptz not null,
  expires_at timestamptz not null,
  primary key (review_id, operator_id),
  constraint review_presence_times check (expires_at > since)
);

-- The text that a version was written as, with its comments. It is only shown if it says the same as the signed document.
create table document_source (
  kind text not null check (kind in ('strategy', 'blueprint')),
  account_id text not null references account (id),
  document_id text not null,
  version integer not null check (version > 0),
  text text not null,
  primary key (account_id, kind, document_id, version)
);

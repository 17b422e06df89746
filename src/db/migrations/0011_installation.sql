-- One row: which installation this database belongs to.
create table installation (
  is_only boolean primary key default true check (is_only),
  -- a keyed hash: tells whether a signing key is the one, and nothing else about it
  signing_key_print bytea not null check (octet_length(signing_key_print) = 32),
  created_at timestamptz not null default app_now()
);

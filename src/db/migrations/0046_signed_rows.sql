-- Rows that decide where secrets go carry a MAC that only processes with the signing key can make. Each change gets a new serial.
create sequence row_serial as bigint;

alter table vault_key add column row_serial bigint, add column row_mac bytea check (octet_length(row_mac) = 32);
alter table strategy add column row_serial bigint, add column row_mac bytea check (octet_length(row_mac) = 32);
alter table strategy_version add column row_serial bigint, add column row_mac bytea check (octet_length(row_mac) = 32);
alter table blueprint add column row_serial bigint, add column row_mac bytea check (octet_length(row_mac) = 32);
alter table blueprint_version add column row_serial bigint, add column row_mac bytea check (octet_length(row_mac) = 32);
alter table account_secret add column row_serial bigint, add column row_mac bytea check (octet_length(row_mac) = 32);
alter table operator add column row_serial bigint, add column row_mac bytea check (octet_length(row_mac) = 32);

-- What was there before it was signed is signed once; from then on a row without a MAC is nobody's.
create table row_mark (
  kind text primary key,
  mac bytea not null check (octet_length(mac) = 32),
  signed_at timestamptz not null default app_now()
);

-- Rows that were found not to verify.
create table row_alarm (
  kind text not null,
  id text not null,
  fault text not null check (fault in ('unsigned', 'forged', 'outdated')),
  first_seen_at timestamptz not null default app_now(),
  last_seen_at timestamptz not null default app_now(),
  primary key (kind, id)
);

-- The audit entries that name the serial of a row.
create index audit_entry_row on audit_entry (substring(detail from '"row":"([^"]*)"')) where detail like '%"row":"%';

-- Whether changes of an account's documents that decide where credentials go need two admins. Only of accounts that have said so once:
-- the row stays when they no longer do. It decides in place of the account's document, which is not signed.
create table two_person_rule (
  account_id text primary key references account (id),
  is_on boolean not null,
  row_serial bigint,
  row_mac bytea check (octet_length(row_mac) = 32)
);

-- A change that waits for admins, or has waited.
create table proposal (
  id text primary key,
  account_id text not null references account (id),
  kind text not null check (kind in ('documents', 'rebinding')),
  -- JSON: what would be done, what it was planned on, and why it needs two.
  content text not null,
  status text not null check (status in ('open', 'confirmed', 'applied', 'discarded', 'expired', 'stale')),
  -- null: the command line, which does not know who types.
  proposed_by text references operator (id),
  -- The admins who agree, the proposer included.
  confirmed_by text[] not null default '{}' check (cardinality(confirmed_by) <= 100),
  created_at timestamptz not null default app_now(),
  expires_at timestamptz not null check (expires_at > created_at),
  ended_at timestamptz check ((ended_at is null) = (status in ('open', 'confirmed'))),
  row_serial bigint,
  row_mac bytea check (octet_length(row_mac) = 32),
  -- Documents are applied with the last confirmation; what is carried out later is a rebinding.
  check (status <> 'confirmed' or kind = 'rebinding')
);
create index proposal_waiting on proposal (account_id, created_at) where ended_at is null;
create index proposal_newest on proposal (created_at desc, id desc);

alter table row_alarm drop constraint row_alarm_fault_check,
  add constraint row_alarm_fault_check check (fault in ('unsigned', 'forged', 'outdated', 'deleted'));

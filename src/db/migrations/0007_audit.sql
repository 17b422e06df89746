-- What happened, written in the transaction of the effect: no audit, no effect (design, page 6, T9).
create table audit_entry (
  id text primary key,
  -- null: of the installation itself (an operator was made)
  account_id text references account,
  chain text not null generated always as (coalesce(account_id, 'installation')) stored,
  occurred_at timestamptz not null,
  actor_kind text not null check (actor_kind in ('api_key', 'end_user', 'run', 'operator', 'cli', 'service')),
  actor_id text check (actor_id <> ''),
  -- the closed list is AUDIT_ACTIONS in domain/audit.ts
  action text not null check (action ~ '^[a-z_]+\.[a-z_]+$'),
  subject_id text not null check (subject_id <> ''),
  run_id text check (run_id <> ''),
  -- a small JSON object; text, because its bytes are hashed
  detail text not null check (octet_length(detail) <= 65536),
  -- HMAC of what is above, by the process that wrote it: the closer chains nothing that carries no seal of ours
  seal bytea not null check (octet_length(seal) = 32),
  -- given when the chain is closed over it, within a second: the inserts of an account never wait for each other
  sequence bigint check (sequence > 0),
  hash bytea check (octet_length(hash) = 32),
  signature bytea check (octet_length(signature) = 64),
  check (num_nulls(sequence, hash, signature) in (0, 3)),
  unique (chain, sequence)
);
create index audit_entry_open on audit_entry (chain, id) where sequence is null;
create index audit_entry_credential_open on audit_entry (occurred_at) where action = 'credential.open';

-- Where each chain ends. Its row's lock makes closers follow each other.
create table audit_chain (
  chain text primary key,
  count bigint not null check (count >= 0),
  head bytea not null check (octet_length(head) = 32)
);

-- Append-only: an entry is chained once, and changes in nothing else.
create function audit_entry_guard() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' then
    if old.sequence is null and new.sequence is not null
       and (old.id, old.occurred_at, old.actor_kind, old.action, old.subject_id, old.detail, old.seal)
         = (new.id, new.occurred_at, new.actor_kind, new.action, new.subject_id, new.detail, new.seal)
       and (old.account_id, old.actor_id, old.run_id) is not distinct from (new.account_id, new.actor_id, new.run_id)
    then
      return new;
    end if;
  end if;
  raise exception 'The audit log is append-only: % of audit_entry is refused', tg_op using errcode = 'insufficient_privilege';
end $$;
create trigger audit_entry_append_only before update or delete on audit_entry
  for each row execute function audit_entry_guard();
create trigger audit_entry_no_truncate before truncate on audit_entry
  for each statement execute function audit_entry_guard();

-- compatible back to 0088
-- Months of the audit log that were exported and taken out of the database (docs/audit.md#months). What is left of each chain's part, signed,
-- so that the chain still verifies. Only the owner of the tables writes these rows.
create table audit_month (
  chain text not null,
  -- The first day of the month.
  month date not null check (extract(day from month) = 1),
  -- The part is these numbers of the chain.
  first bigint not null check (first > 0),
  last bigint not null check (last >= first),
  -- The hashes of the entry before it and of its last one.
  previous bytea not null check (octet_length(previous) = 32),
  head bytea not null check (octet_length(head) = 32),
  -- Entries that stay, because signed rows need them.
  kept bigint not null check (kept between 0 and last - first + 1),
  kept_sha256 bytea not null check (octet_length(kept_sha256) = 32),
  file_sha256 bytea not null check (octet_length(file_sha256) = 32),
  signature bytea not null check (octet_length(signature) = 64),
  primary key (chain, last),
  unique (chain, month)
);

-- As before; and an entry may be deleted once its month is in the table above, for which a role needs the right to delete, as only the owner has.
create or replace function audit_entry_guard() returns trigger language plpgsql as $$
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
end $$;

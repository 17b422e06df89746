-- The audit log of one account: without it, a small account's entries were looked for among everybody's, newest first.
create index audit_entry_account on audit_entry (account_id, occurred_at, id) where account_id is not null;

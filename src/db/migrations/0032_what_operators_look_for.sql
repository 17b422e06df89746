-- The audit log by what was done to whom. What runs write all the time has no index by action; nobody lists all of it by that.
create index audit_entry_subject on audit_entry (subject_id, occurred_at, id);
create index audit_entry_rare on audit_entry (action, occurred_at, id)
  where action not in ('session.create', 'credential.submit', 'credential.open', 'credential.send');
create index audit_entry_operator on audit_entry (actor_id, occurred_at, id) where actor_kind = 'operator';

-- Logins that fail.
create index credential_rejected on credential (account_id, strategy_id) where login_rejections > 0;

-- Why the last sign-in of a session at its target's own pages came to nothing, for operators: it was in the log alone. Null: none failed.
alter table credential_session
  add column sign_in_failure text check (char_length(sign_in_failure) <= 500),
  add column sign_in_failed_at timestamptz,
  add check ((sign_in_failure is null) = (sign_in_failed_at is null));

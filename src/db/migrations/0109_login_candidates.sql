-- compatible back to 0088
-- Strategies with `verify`: a login that an end user has sent is a candidate until it has been tried at the target.

-- Null: a credential. Otherwise since when the candidate is tried.
alter table credential add column candidate_at timestamptz;

-- What the last try came to, how many logins the target has refused, and until when no further one is taken.
alter table credential_session
  add column login_check text,
  add column login_refusals integer not null default 0,
  add column login_closed_until timestamptz,
  add constraint credential_session_login_check_check
    check (login_check in ('accepted', 'refused', 'unanswered')) not valid,
  add constraint credential_session_login_refusals_check check (login_refusals >= 0) not valid;

-- A candidate's id is known to nobody, and its session says what became of it: it has no events.
create or replace trigger credential_deleted_event after delete on credential
  for each row when (old.candidate_at is null)
  execute function note_credential_event();
create or replace trigger credential_login_event after update of login_rejections, login_locked_until on credential
  for each row
  when (new.candidate_at is null
    and (new.login_rejections > old.login_rejections or new.login_locked_until is distinct from old.login_locked_until))
  execute function note_credential_event();
create or replace trigger lock_for_operators after update of login_locked_until on credential
  for each row
  when (new.candidate_at is null and new.login_locked_until is not null
    and new.login_locked_until is distinct from old.login_locked_until)
  execute function note_lock_for_operators();

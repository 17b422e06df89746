-- compatible back to 0088
-- The rows from before. Reads and writes continue meanwhile.
alter table credential_session validate constraint credential_session_login_check_check;
alter table credential_session validate constraint credential_session_login_refusals_check;

-- That a session has expired without a credential is on record once, when housekeeping comes to it. `expired` itself is never stored: the
-- clock decides at each read.
alter table credential_session add column expiry_noted_at timestamptz;
create index credential_session_expiring on credential_session (expires_at) where status = 'pending' and expiry_noted_at is null;

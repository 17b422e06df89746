-- That an embedded session has expired before its form was complete is on record once, as with credential sessions. `expired` itself is
-- never stored: the clock decides at each read.
alter table embedded_credential_session add column expiry_noted_at timestamptz;
create index embedded_credential_session_expiring on embedded_credential_session (expires_at)
  where status = 'pending' and expiry_noted_at is null;

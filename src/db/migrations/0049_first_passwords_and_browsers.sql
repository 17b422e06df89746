-- Until when a password counts that was made for an operator, and not by them: they change it at their first sign-in. Null: it is their own.
alter table operator add column first_password_until timestamptz;

-- Which browser has first opened the link of a session, and when: one that opens it later is told.
alter table credential_session add column first_browser bytea check (octet_length(first_browser) = 32);
alter table credential_session add column first_opened_at timestamptz;
alter table credential_session add check ((first_browser is null) = (first_opened_at is null));

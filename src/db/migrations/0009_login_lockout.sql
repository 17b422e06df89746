-- Rejected logins of a credential in a row; from its strategy's `lockout` on, no login is tried until the time given here.
alter table credential
  add column login_rejections integer not null default 0 check (login_rejections >= 0),
  add column login_locked_until timestamptz,
  add check (login_locked_until is null or login_rejections > 0);

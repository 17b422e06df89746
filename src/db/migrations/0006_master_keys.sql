-- A value and the key that it is sealed with can't come apart: no row names a key that was retired, also not the row of a
-- process that has not yet heard of it.
alter table credential add foreign key (kid) references vault_key;
alter table login_session add foreign key (kid) references vault_key;
create index login_session_kid on login_session (kid);

-- When the key stopped being the primary one: for a moment more, processes may still seal with it.
alter table vault_key add column demoted_at timestamptz;

-- Which login it is: part of what the sealed value is bound to, so that the bytes of an earlier one don't open any more.
-- Logins that were cached before are done again.
delete from login_session;
alter table login_session add column login_id text not null;

-- What a run stands in line for: the id of a credential (its turn to log in), or "<Blueprint>/<node>" (its turn at a throttle). While
-- parked_at is set it stands there, and holds nothing; without it, it has been called to the throttle and has not had its slot yet.
alter table run add column line text;
-- Who has the right to log in next, before all runs in line: a command that binds the credential anew.
alter table credential add column login_next text;
-- How far apart the slots are, as the last run asked for them; null: by a version that did not say.
alter table throttle_slot add column spacing_ms double precision check (spacing_ms > 0);
-- Heartbeats, counted: a clock that steps or stands still does not change whether there are more of them. And the server on which the
-- worker holds its lock: one that was started again or promoted since then has lost all locks, and proves nobody's end.
alter table worker add column beats bigint not null default 0;
alter table worker add column server text not null default '';

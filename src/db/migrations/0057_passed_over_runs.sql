-- How often a waiting run was looked at because one credential of its own was free, and stood aside for another one. After three times
-- its `waits_for` is '' (all of its credentials), and nothing that comes after it is given their places before it.
alter table run add column passed_over smallint not null default 0;

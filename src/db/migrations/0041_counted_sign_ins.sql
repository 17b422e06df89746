-- Attempts by names that no operator has are counted like the others, so that nobody can tell; but no more than so many of them are kept.
alter table operator_throttle add column is_unknown boolean not null default false;
create index operator_throttle_unknown on operator_throttle (last_at) where is_unknown;

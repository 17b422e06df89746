-- A run again knows which run it repeats. A run without a Blueprint is a test login: it logs in with one credential and does nothing
-- else; no customer sees it. The command line has neither key nor operator, and starts only these two.
alter table run
  alter column blueprint_id drop not null,
  alter column blueprint_version drop not null,
  add column again_of text,
  add foreign key (account_id, again_of) references run (account_id, id),
  add check ((blueprint_id is null) = (blueprint_version is null)),
  add check (blueprint_id is not null or (api_key_id is null and again_of is null)),
  drop constraint run_triggered_by,
  add constraint run_triggered_by check (
    num_nonnulls(api_key_id, operator_id) = 1
    or (api_key_id is null and (again_of is not null or blueprint_id is null)));
create index run_again on run (again_of) where again_of is not null;

-- What operators do to documents and runs has their name beside it. Null: the command line, or an API key.
alter table blueprint_version add column operator_id text references operator (id);
alter table strategy_version add column operator_id text references operator (id);
alter table run
  alter column api_key_id drop not null,
  add column operator_id text references operator (id),
  add constraint run_triggered_by check (num_nonnulls(api_key_id, operator_id) = 1);

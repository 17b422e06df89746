-- Runs of Blueprints with `concurrency` (docs/blueprints.md): those of one group count together. Other runs have no row here.
create table run_group (
  run_id text primary key references run (id),
  account_id text not null,
  blueprint_id text not null,
  name text not null
);

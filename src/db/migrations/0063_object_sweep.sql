-- How far the sweep of the object store has come, so that one that was cut off goes on after the last page that it finished. The row of
-- the last pass stays.
create table object_sweep (
  is_only boolean primary key default true check (is_only),
  -- Rises with each process that sweeps: a former one has no say any more.
  epoch int not null check (epoch > 0),
  -- By an operator: however many objects are removed.
  is_meant boolean not null,
  stage text not null check (stage in ('counting', 'removing', 'unfinished')),
  -- The key of the last object of the stage that was looked at; empty: none was.
  after_key text not null,
  seen bigint not null check (seen >= 0),
  found bigint not null check (found between 0 and seen),
  -- Keys that were found while counting. Beyond a thousand they are listed anew.
  orphans text[] not null check (cardinality(orphans) <= 1000),
  begun_at timestamptz not null,
  moved_at timestamptz not null,
  ended_at timestamptz
);

-- The trace that a run's trigger belongs to (docs/metrics.md#traces). Other runs have no row here.
create table run_trace (
  run_id text primary key references run (id),
  traceparent text not null check (traceparent ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$')
);

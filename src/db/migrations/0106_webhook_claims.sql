-- compatible back to 0088
-- The deliveries that a worker is making: one row for a batch of them, for as long as it takes. Each delivery was written to for that, which
-- cost two versions of its row and of its entries in both indexes for each attempt, instead of one. Without references, like the deliveries.
create table webhook_claim (
  id bigint generated always as identity primary key,
  endpoint_id text not null,
  event_ids text[] not null check (cardinality(event_ids) > 0),
  -- When other workers make them.
  ends_at timestamptz not null
);
create index webhook_claim_endpoint on webhook_claim (endpoint_id);

-- A gate of a Blueprint: its run is parked until a person has decided about the records that came to it. The records themselves
-- are the object that the node's journal entry names (`run_step.source_blob_key`).
create table review (
  id text not null primary key,
  account_id text not null,
  run_id text not null,
  node_id text not null,
  -- rendered, redacted
  title bytea not null,
  instructions bytea,
  editable boolean not null,
  records_total bigint not null,
  records_valid bigint not null,
  created_at timestamptz not null default app_now(),
  expires_at timestamptz,
  on_timeout text check (on_timeout in ('fail', 'approve')),
  -- `closed`: its run ended otherwise
  status text not null default 'open' check (status in ('open', 'approved', 'rejected', 'timed_out', 'closed')),
  decided_by text,
  decided_at timestamptz,
  reason text,
  unique (account_id, id),
  unique (run_id, node_id),
  foreign key (account_id, run_id) references run (account_id, id),
  check (records_valid >= 0 and records_valid <= records_total),
  check ((expires_at is null) = (on_timeout is null)),
  check ((status in ('approved', 'rejected', 'timed_out')) = (decided_at is not null)),
  check ((decided_by is null) = (decided_at is null)),
  check (status <> 'timed_out' or expires_at is not null),
  check (reason is null or decided_at is not null)
);
create unique index review_open on review (run_id) where status = 'open';
create index review_waiting on review (account_id, created_at) where status = 'open';
create index review_expiring on review (expires_at) where status = 'open' and expires_at is not null;

-- What the reviewer changed: a record's new data, or that it is left out. With the object it is the whole difference.
create table review_change (
  account_id text not null,
  review_id text not null,
  -- the record's place among those of the review
  ordinal integer not null check (ordinal >= 0),
  change text not null check (change in ('edited', 'excluded')),
  -- JSON
  data bytea,
  primary key (review_id, ordinal),
  foreign key (account_id, review_id) references review (account_id, id),
  check ((change = 'edited') = (data is not null))
);

-- Whoever ends a parked run (a cancel, a credential that is deleted), its open review is closed in the same transaction.
create function close_reviews() returns trigger language plpgsql as $$
begin
  update review set status = 'closed' where run_id = new.id and status = 'open';
  return null;
end
$$;
create trigger run_ended_closes_reviews after update of ended_at on run
  for each row when (old.ended_at is null and new.ended_at is not null and new.parked_at is not null)
  execute function close_reviews();

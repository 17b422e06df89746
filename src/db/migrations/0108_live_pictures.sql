-- compatible back to 0088
-- What the page of a run shows while somebody looks, and until when somebody does. Unlogged: a crash of the server leaves nothing of it.
create unlogged table live_picture (
  run_id text primary key,
  watched_until timestamptz not null,
  step text,
  png bytea,
  taken_at timestamptz,
  constraint live_picture_whole check (num_nonnulls(step, png, taken_at) in (0, 3)),
  constraint live_picture_size check (octet_length(png) <= 200000)
);
-- A PNG is compressed already.
alter table live_picture alter column png set storage external;

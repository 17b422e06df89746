-- A rotated key names its successor, and ends at its `expires_at`: why it ends is told from `replaced_by`. So a process of the
-- version before, which knows nothing of rotation, ends it at the same instant.
alter table api_key
  add column replaced_by text,
  add unique (account_id, id),
  add foreign key (account_id, replaced_by) references api_key (account_id, id),
  add check (replaced_by is null or (replaced_by <> id and expires_at is not null));

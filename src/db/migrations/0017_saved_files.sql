-- What an `http` node with `save: file` keeps beside the bytes.
alter table run_step add column filename bytea, add column content_type bytea,
  add check (output_kind = 'file' or (filename is null and content_type is null));

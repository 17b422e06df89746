-- What was sent with a write that may have happened, for the person who decides: redacted, its beginning. Purged with the run.
alter table run_write add column sent text;

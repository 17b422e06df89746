-- A repeated request is recognised by its bytes, before they are parsed. Null: by `fingerprint` alone, as every request is that a program of
-- before has answered.
alter table idempotency_key add column bytes_fingerprint bytea;

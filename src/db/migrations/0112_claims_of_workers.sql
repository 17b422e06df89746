-- compatible back to 0088
-- Whose claim it is: those of a lost worker end with its row, like its runs' leases, and not only at their time. null: of a worker that is no
-- member at the moment, or of a version before. Without a reference: a claim holds up nobody who removes a worker.
alter table webhook_claim add column worker_id text;

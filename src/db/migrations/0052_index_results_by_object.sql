-- Deleting an object's row asks whether one of these names it; built while the table is written to.
create index concurrently run_result_blob on run_result (blob_key) where blob_key is not null;

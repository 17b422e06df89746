-- Deleting an object's row asks whether one of these names it; built while the table is written to.
create index concurrently run_input_blob on run_input (blob_key) where blob_key is not null;

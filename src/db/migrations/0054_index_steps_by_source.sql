-- Deleting an object's row asks whether one of these names it; built while the table is written to.
create index concurrently run_step_source_blob on run_step (source_blob_key) where source_blob_key is not null;

-- compatible back to 0088
-- The last migration of the oldest program that may use the schema after a migration: its own first line says so.

alter table schema_migration add column if not exists compatible_back_to integer;

-- The first in a line, and those that were called from it; built while the table is written to.
create index concurrently run_line on run (line, (parked_at is null), created_at, id) where line is not null and ended_at is null;

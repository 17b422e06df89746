-- How many browsers the worker may run at once; 0: it has none; null: it has not said.
alter table worker add column browsers integer,
  add constraint worker_browsers check (browsers >= 0);

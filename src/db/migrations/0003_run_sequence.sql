-- Counts what callers can see of a run: the id of its events. A trigger, so that no UPDATE, of this release or a later one,
-- can forget it.
alter table run add column sequence integer not null default 1 check (sequence > 0);

create function raise_run_sequence() returns trigger
  language plpgsql
  as $$
begin
  new.sequence := old.sequence + 1;
  return new;
end
$$;

create trigger run_sequence before update of status, progress_step on run
  for each row
  when (old.status is distinct from new.status or old.progress_step is distinct from new.progress_step)
  execute function raise_run_sequence();

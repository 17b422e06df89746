-- A run may end while a write of it is under way, and nobody carries the run any further: whether the write happened is then the
-- operator's question, whatever has ended the run. A trigger, so that no UPDATE, of this release or a later one, can forget it. It
-- looks after the run's row is had, so it sees the write that was begun just before. An answer that still comes settles it.
create function doubt_writes_under_way() returns trigger
  language plpgsql
  as $$
begin
  -- The statement may have waited for whoever began the write.
  update run_write set status = 'in_doubt', ended_at = greatest(app_now(), started_at),
    detail = 'the run ended while it was under way'
  where run_id = new.id and status = 'started';
  return null;
end
$$;

create trigger run_writes_under_way after update of ended_at on run
  for each row
  when (old.ended_at is null and new.ended_at is not null and new.status <> 'completed')
  execute function doubt_writes_under_way();

update run_write set status = 'in_doubt', ended_at = app_now(), detail = 'the run ended while it was under way'
from run where run.id = run_write.run_id and run.ended_at is not null and run_write.status = 'started';

-- Whether anybody wants events of runs is asked once for all runs of a statement; it was asked twice for each change of each run.
create function note_run_events() returns trigger
  language plpgsql
  as $$
begin
  if not exists (select from webhook_endpoint where disabled_at is null)
    and not exists (select from event_listener where ends_at > app_now()) then
    return null;
  end if;
  perform note_event(
    now.account_id,
    'run.' || case
      when was.purged_at is null and now.purged_at is not null then 'purged'
      when now.progress_step = 'awaiting_review' then 'awaiting_review'
      when now.status = 'running' then 'started'
      else now.status end,
    now.id,
    jsonb_build_object('id', now.id, 'runKey', now.run_key, 'status', now.status, 'progressStep', now.progress_step,
      'createdAt', now.created_at, 'startedAt', now.started_at, 'endedAt', now.ended_at, 'blueprintId', now.blueprint_id))
  from before as was join after as now on now.id = was.id
  where now.blueprint_id is not null
    and (was.status is distinct from now.status
      or (now.progress_step = 'awaiting_review' and was.progress_step is distinct from now.progress_step)
      or (was.purged_at is null and now.purged_at is not null))
    and (exists (select from webhook_endpoint where account_id = now.account_id and disabled_at is null)
      or exists (select from event_listener where account_id = now.account_id and ends_at > app_now()));
  return null;
end
$$;
drop trigger run_event on run;
create trigger run_events after update on run
  referencing old table as before new table as after
  for each statement execute function note_run_events();
drop function note_run_event();

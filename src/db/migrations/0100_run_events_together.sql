-- The events of all runs that a statement changes are two inserts, instead of two inserts and a call of a function for each run.
create or replace function note_run_events() returns trigger language plpgsql as $$
begin
  if not exists (select from webhook_endpoint where disabled_at is null)
    and not exists (select from event_listener where ends_at > app_now()) then
    return null;
  end if;
  with change as (
    select now.account_id, now.id, 'run.' || case
        when was.purged_at is null and now.purged_at is not null then 'purged'
        when now.progress_step = 'awaiting_review' then 'awaiting_review'
        when now.status = 'running' then 'started'
        else now.status end as type,
      jsonb_build_object('id', now.id, 'runKey', now.run_key, 'status', now.status, 'progressStep', now.progress_step,
        'createdAt', now.created_at, 'startedAt', now.started_at, 'endedAt', now.ended_at, 'blueprintId', now.blueprint_id) as data
    from before as was join after as now on now.id = was.id
    where now.blueprint_id is not null
      and (was.status is distinct from now.status
        or (now.progress_step = 'awaiting_review' and was.progress_step is distinct from now.progress_step)
        or (was.purged_at is null and now.purged_at is not null))),
  event as (
    insert into webhook_event (id, account_id, type, subject_id, occurred_at, data)
    select new_event_id(), account_id, type, id, app_now(), data from change
    where exists (select from webhook_endpoint endpoint where endpoint.account_id = change.account_id and disabled_at is null
        and events && array['*', 'run.*', change.type])
      or exists (select from event_listener listener where listener.account_id = change.account_id and ends_at > app_now())
    returning id, account_id, type)
  insert into webhook_delivery (endpoint_id, event_id, due_at)
  select endpoint.id, event.id, app_now() from event join webhook_endpoint endpoint on endpoint.account_id = event.account_id
  where disabled_at is null and events && array['*', 'run.*', event.type];
  return null;
end
$$;

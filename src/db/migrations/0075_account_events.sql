-- The stream of an account's events (docs/api.md#events): while one is open, and a while after, events are written although no
-- endpoint of the account wants them.
create table event_listener (
  account_id text primary key references account (id),
  ends_at timestamptz not null
);

alter table api_key drop constraint api_key_scopes_check;
alter table api_key add constraint api_key_scopes_check
  check (scopes <@ array['runs', 'sessions', 'credentials:delete', 'events'] and cardinality(scopes) > 0);

-- As before, also for listeners. Gives the event's id; null: nobody wants it, and it was not written.
drop function note_event(text, text, text, jsonb);
create function note_event(of_account text, of_type text, of_subject text, content jsonb) returns text
  language plpgsql
  as $$
declare
  new_id text;
  subscriptions text[] := array['*', split_part(of_type, '.', 1) || '.*', of_type];
begin
  if not exists (select from webhook_endpoint
      where account_id = of_account and disabled_at is null and events && subscriptions)
    and not exists (select from event_listener where account_id = of_account and ends_at > app_now()) then
    return null;
  end if;
  new_id := new_event_id();
  insert into webhook_event (id, account_id, type, subject_id, occurred_at, data)
    values (new_id, of_account, of_type, of_subject, app_now(), content);
  insert into webhook_delivery (endpoint_id, event_id, due_at)
    select id, new_id, app_now() from webhook_endpoint
    where account_id = of_account and disabled_at is null and events && subscriptions;
  return new_id;
end
$$;

create or replace function note_run_event() returns trigger
  language plpgsql
  as $$
begin
  if exists (select from webhook_endpoint where account_id = new.account_id and disabled_at is null)
    or exists (select from event_listener where account_id = new.account_id and ends_at > app_now()) then
    perform note_event(
      new.account_id,
      'run.' || case
        when old.purged_at is null and new.purged_at is not null then 'purged'
        when new.progress_step = 'awaiting_review' then 'awaiting_review'
        when new.status = 'running' then 'started'
        else new.status end,
      new.id,
      jsonb_build_object('id', new.id, 'runKey', new.run_key, 'status', new.status, 'progressStep', new.progress_step,
        'createdAt', new.created_at, 'startedAt', new.started_at, 'endedAt', new.ended_at, 'blueprintId', new.blueprint_id));
  end if;
  return null;
end
$$;

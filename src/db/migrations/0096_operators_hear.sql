-- Endpoints of the operators themselves, who are told of what needs a person in any account: no account.
alter table webhook_endpoint alter column account_id drop not null;
alter table webhook_endpoint add constraint webhook_endpoint_document_check check (account_id is not null or not is_from_document);
alter table webhook_secret alter column account_id drop not null;
alter table webhook_event alter column account_id drop not null;

-- Writes an event for the endpoints of operators that want it.
create function note_operator_event(of_type text, of_account text, of_subject text, content jsonb) returns void
  language plpgsql
  as $$
declare
  new_id text;
  subscriptions text[] := array['*', split_part(of_type, '.', 1) || '.*', of_type];
begin
  if not exists (select from webhook_endpoint
      where account_id is null and disabled_at is null and events && subscriptions) then
    return;
  end if;
  new_id := new_event_id();
  insert into webhook_event (id, account_id, type, subject_id, occurred_at, data)
    values (new_id, null, of_type, of_subject, app_now(),
      content || jsonb_build_object('account', (select slug from account where id = of_account)));
  insert into webhook_delivery (endpoint_id, event_id, due_at)
    select id, new_id, app_now() from webhook_endpoint
    where account_id is null and disabled_at is null and events && subscriptions;
end
$$;

-- These transitions are rare: no run that needs nobody pays for them.
create function note_review_for_operators() returns trigger
  language plpgsql
  as $$
begin
  perform note_operator_event('operator.review_waiting', new.account_id, new.id,
    jsonb_build_object('reviewId', new.id, 'runId', new.run_id, 'blueprint', (select blueprint.key from run
      join blueprint on blueprint.id = run.blueprint_id where run.id = new.run_id)));
  return null;
end
$$;
create trigger review_for_operators after insert on review
  for each row when (new.status = 'open')
  execute function note_review_for_operators();

-- One event for the writes of a node that become uncertain together.
create function note_write_for_operators() returns trigger
  language plpgsql
  as $$
begin
  if not exists (select from run_write where run_id = new.run_id and node_id = new.node_id and status = 'in_doubt'
      and ordinal < new.ordinal) then
    perform note_operator_event('operator.write_uncertain', new.account_id, new.run_id,
      jsonb_build_object('runId', new.run_id, 'node', new.node_id, 'blueprint', (select blueprint.key from run
        join blueprint on blueprint.id = run.blueprint_id where run.id = new.run_id)));
  end if;
  return null;
end
$$;
create trigger write_for_operators after update of status on run_write
  for each row when (new.status = 'in_doubt' and old.status <> 'in_doubt')
  execute function note_write_for_operators();

create function note_lock_for_operators() returns trigger
  language plpgsql
  as $$
begin
  perform note_operator_event('operator.credential_locked', new.account_id, new.id,
    jsonb_build_object('credentialId', new.id, 'strategyId', new.strategy_id));
  return null;
end
$$;
create trigger lock_for_operators after update of login_locked_until on credential
  for each row when (new.login_locked_until is not null and new.login_locked_until is distinct from old.login_locked_until)
  execute function note_lock_for_operators();

create function note_dead_endpoint_for_operators() returns trigger
  language plpgsql
  as $$
begin
  perform note_operator_event('operator.webhook_disabled', new.account_id, new.id,
    jsonb_build_object('webhookId', new.id, 'reason', new.disabled_reason));
  return null;
end
$$;
create trigger dead_endpoint_for_operators after update of disabled_at on webhook_endpoint
  for each row when (old.disabled_at is null and new.disabled_reason in ('gone', 'failing'))
  execute function note_dead_endpoint_for_operators();

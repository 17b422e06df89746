-- Where the events of an account are sent.
create table webhook_endpoint (
  id text primary key,
  account_id text not null references account (id),
  url text not null check (char_length(url) between 1 and 2000),
  description text not null default '' check (char_length(description) <= 200),
  -- Exact types, `run.*` for all of a subject, or `*`.
  events text[] not null check (cardinality(events) between 1 and 30),
  created_at timestamptz not null default app_now(),
  disabled_at timestamptz,
  disabled_reason text check (disabled_reason in ('operator', 'gone', 'failing')),
  -- Since when every attempt has failed; null: the last one succeeded, or there was none.
  failing_since timestamptz,
  check ((disabled_at is null) = (disabled_reason is null))
);
create index webhook_endpoint_account on webhook_endpoint (account_id);

-- The secrets that deliveries are signed with: the current one, and after a rotation the previous one until `ends_at`.
create table webhook_secret (
  id text primary key,
  account_id text not null references account (id),
  endpoint_id text not null references webhook_endpoint (id),
  sealed bytea not null check (octet_length(sealed) > 0),
  kid text not null references vault_key (kid),
  created_at timestamptz not null default app_now(),
  ends_at timestamptz
);
create index webhook_secret_endpoint on webhook_secret (endpoint_id);
create index webhook_secret_kid on webhook_secret (kid);

-- The outbox: rows are written by triggers, in the transaction of the effect. The tables below have no references, whose checks each
-- run of an account with endpoints would pay for. Ids begin with the time, so that they are in its order.
create table webhook_event (
  id text primary key,
  account_id text not null,
  type text not null,
  subject_id text not null,
  occurred_at timestamptz not null,
  -- The columns that the API's projection of the subject shows, as they were.
  data jsonb not null
);

create table webhook_delivery (
  endpoint_id text not null,
  event_id text not null,
  -- Attempts begun. An attempt that was begun later has the delivery.
  attempts integer not null default 0 check (attempts >= 0),
  -- When the next attempt is due; during one, when another worker makes the next. Null: delivered, or given up.
  due_at timestamptz,
  -- Attempts since the delivery was created or resent: which of the delays is next.
  tries integer not null default 0 check (tries >= 0),
  delivered_at timestamptz,
  failed_at timestamptz,
  primary key (endpoint_id, event_id),
  check (num_nonnulls(due_at, delivered_at, failed_at) = 1)
);
create index webhook_delivery_due on webhook_delivery (endpoint_id, due_at) where due_at is not null;

create table webhook_attempt (
  endpoint_id text not null,
  event_id text not null,
  number integer not null check (number > 0),
  began_at timestamptz not null,
  duration_ms integer not null check (duration_ms >= 0),
  -- The status of the answer; null: there was none, for the reason in `failure`.
  status integer,
  failure text check (char_length(failure) <= 300),
  -- The beginning of the answer's body.
  answer text not null default '' check (char_length(answer) <= 1024),
  primary key (endpoint_id, event_id, number),
  check ((status is null) = (failure is not null))
);

-- A new event's id: the time in milliseconds, and random digits.
create function new_event_id() returns text
  language sql volatile
  return 'msg_' || lpad(to_hex((extract(epoch from app_now()) * 1000)::bigint), 12, '0')
    || substr(replace(gen_random_uuid()::text, '-', ''), 1, 20);

-- An account without endpoints pays for one look into an index, and writes nothing.
create function note_event(of_account text, of_type text, of_subject text, content jsonb) returns void
  language plpgsql
  as $$
declare
  new_id text;
  subscriptions text[] := array['*', split_part(of_type, '.', 1) || '.*', of_type];
begin
  if not exists (select from webhook_endpoint
      where account_id = of_account and disabled_at is null and events && subscriptions) then
    return;
  end if;
  new_id := new_event_id();
  insert into webhook_event (id, account_id, type, subject_id, occurred_at, data)
    values (new_id, of_account, of_type, of_subject, app_now(), content);
  insert into webhook_delivery (endpoint_id, event_id, due_at)
    select id, new_id, app_now() from webhook_endpoint
    where account_id = of_account and disabled_at is null and events && subscriptions;
end
$$;

-- Triggers, so that no UPDATE, of this release or a later one, can forget the event.
create function note_run_event() returns trigger
  language plpgsql
  as $$
begin
  if exists (select from webhook_endpoint where account_id = new.account_id and disabled_at is null) then
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
create trigger run_event after update of status, progress_step, purged_at on run
  for each row
  when (new.blueprint_id is not null and (
    old.status is distinct from new.status
    or (new.progress_step = 'awaiting_review' and old.progress_step is distinct from new.progress_step)
    or (old.purged_at is null and new.purged_at is not null)))
  execute function note_run_event();

create function note_session_event() returns trigger
  language plpgsql
  as $$
declare
  state text := case when new.status = 'completed' then 'completed' else 'expired' end;
begin
  perform note_event(new.account_id, 'credential_session.' || state, new.id,
    jsonb_build_object('id', new.id, 'status', state, 'returnUrl', new.return_url, 'strategyId', new.strategy_id,
      'credentialId', new.credential_id, 'expiresAt', new.expires_at, 'completedAt', new.completed_at, 'createdAt', new.created_at));
  return null;
end
$$;
-- The form of a slot is part of its embedded session, which has events of its own.
create trigger credential_session_event after update of status, expiry_noted_at on credential_session
  for each row
  when (new.embedded_session_id is null and (old.status is distinct from new.status
    or (old.expiry_noted_at is null and new.expiry_noted_at is not null)))
  execute function note_session_event();

create function note_embedded_session_event() returns trigger
  language plpgsql
  as $$
declare
  state text := case when new.status = 'completed' then 'completed' else 'expired' end;
begin
  perform note_event(new.account_id, 'embedded_credential_session.' || state, new.id,
    jsonb_build_object('id', new.id, 'status', state, 'origin', new.origin, 'blueprintKeys', new.blueprint_keys,
      'selectedBlueprintKey', new.selected_blueprint_key, 'credentialId', new.credential_id,
      'credentialIds', (select coalesce(json_object_agg(slot.slot, slot.credential_id order by slot.slot_position), '{}')
        from credential_session slot where slot.account_id = new.account_id and slot.embedded_session_id = new.id
          and slot.blueprint_key = new.selected_blueprint_key and slot.credential_id is not null),
      'expiresAt', new.expires_at, 'completedAt', new.completed_at, 'createdAt', new.created_at));
  return null;
end
$$;
create trigger embedded_session_event after update of status, expiry_noted_at on embedded_credential_session
  for each row
  when (old.status is distinct from new.status or (old.expiry_noted_at is null and new.expiry_noted_at is not null))
  execute function note_embedded_session_event();

create function note_credential_event() returns trigger
  language plpgsql
  as $$
declare
  content jsonb := jsonb_build_object('id', old.id, 'strategyId', old.strategy_id);
begin
  if tg_op = 'DELETE' then
    perform note_event(old.account_id, 'credential.deleted', old.id, content);
    return null;
  end if;
  if new.login_rejections > old.login_rejections then
    perform note_event(new.account_id, 'credential.needs_attention', new.id, content);
  end if;
  if new.login_locked_until is not null and new.login_locked_until is distinct from old.login_locked_until then
    perform note_event(new.account_id, 'credential.locked', new.id, content);
  end if;
  return null;
end
$$;
create trigger credential_deleted_event after delete on credential
  for each row execute function note_credential_event();
create trigger credential_login_event after update of login_rejections, login_locked_until on credential
  for each row
  when (new.login_rejections > old.login_rejections or new.login_locked_until is distinct from old.login_locked_until)
  execute function note_credential_event();

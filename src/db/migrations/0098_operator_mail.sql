-- What the mail to operators has told. One row, written when a worker with mail settings first runs.
create table operator_mail (
  singleton boolean primary key default true check (singleton),
  -- Until then operators' events are written although no endpoint wants them.
  listens_until timestamptz not null,
  -- Events up to this one have been told.
  told_until text not null,
  -- When the next mail may be sent; during an attempt, when another worker makes the next.
  due_at timestamptz not null,
  sent_at timestamptz,
  -- Since when every attempt has failed; null: the last one succeeded, or there was none.
  failing_since timestamptz,
  failure text check (char_length(failure) <= 300),
  check ((failing_since is null) = (failure is null))
);

-- As before, also for the mail.
create or replace function note_operator_event(of_type text, of_account text, of_subject text, content jsonb) returns void
  language plpgsql
  as $$
declare
  new_id text;
  subscriptions text[] := array['*', split_part(of_type, '.', 1) || '.*', of_type];
begin
  if not exists (select from webhook_endpoint
      where account_id is null and disabled_at is null and events && subscriptions)
    and not exists (select from operator_mail where listens_until > app_now()) then
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

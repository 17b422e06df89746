-- Test mode: an account has at most one test account, with keys, credentials and runs of its own.

alter table account add column test_of text unique references account(id) check (test_of <> id);

-- Operators are not told of what waits in test accounts.
create or replace function note_operator_event(of_type text, of_account text, of_subject text, content jsonb) returns void
  language plpgsql
  as $$
declare
  new_id text;
  subscriptions text[] := array['*', split_part(of_type, '.', 1) || '.*', of_type];
begin
  if not exists (select from webhook_endpoint
      where account_id is null and disabled_at is null and events && subscriptions)
    and not exists (select from operator_mail where listens_until > app_now())
    or exists (select from account where id = of_account and test_of is not null) then
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

-- What a caller may add to a credential session: its own reference, as JSON text in the order in which it was given, and where the end user
-- goes who cancels. Null: not given.
alter table credential_session
  add column metadata text check (octet_length(metadata) <= 65536),
  add column cancel_url text;

-- As before, with both.
create or replace function note_session_event() returns trigger
  language plpgsql
  as $$
declare
  state text := case when new.status = 'completed' then 'completed' else 'expired' end;
begin
  perform note_event(new.account_id, 'credential_session.' || state, new.id,
    jsonb_build_object('id', new.id, 'status', state, 'returnUrl', new.return_url, 'strategyId', new.strategy_id,
      'credentialId', new.credential_id, 'expiresAt', new.expires_at, 'completedAt', new.completed_at, 'createdAt', new.created_at,
      'metadata', new.metadata, 'cancelUrl', new.cancel_url));
  return null;
end
$$;

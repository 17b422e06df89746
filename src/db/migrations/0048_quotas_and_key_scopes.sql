-- What each account has stored, for its quota: inputs of its runs, and objects of their steps and results. What changes it notes so beside the
-- change, in the same transaction, and in a row of its own, so that no two transactions wait for each other. Now and then the notes are added up.
create table account_usage (
  account_id text primary key references account (id),
  stored_bytes bigint not null
);
-- Without a reference to the account, whose check each trigger would pay for; what it is added up into has one.
create table account_usage_change (
  account_id text not null,
  bytes bigint not null check (bytes <> 0)
);
create index account_usage_change_account on account_usage_change (account_id);

insert into account_usage (account_id, stored_bytes)
select account.id,
  coalesce((select sum(size_bytes) from blob where blob.account_id = account.id), 0)
    + coalesce((select sum(octet_length(content)) from run_input where run_input.account_id = account.id), 0)
from account;

-- What a key may do. Null: it was made before there were scopes, and may do everything that its Blueprints do not forbid.
alter table api_key add column scopes text[]
  check (scopes <@ array['runs', 'sessions', 'credentials:delete'] and cardinality(scopes) > 0);

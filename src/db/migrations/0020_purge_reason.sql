-- Why a run's data went: its time was over, or an operator said so. Runs that were purged before have none.
alter table run
  add column purge_reason text check (purge_reason in ('retention', 'operator')),
  add check (purge_reason is null or purged_at is not null);

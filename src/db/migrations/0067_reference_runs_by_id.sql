-- A run's rows name it by its id alone. With the account in the key PostgreSQL could take an index by account for the check, and did in a
-- database without statistics: each trigger then read all runs of the account, until the first ANALYZE. That rows and run are of the same account
-- is invariant V15.
-- The run first, its rows without waiting: a statement that has one of them and waits for the run would be waited for in turn.
lock table run in access exclusive mode;
lock table blob, review, run_credential, run_input, run_poll, run_result, run_step, run_turn, run_write in access exclusive mode nowait;

alter table blob drop constraint blob_account_id_run_id_fkey,
  add constraint blob_run_id_fkey foreign key (run_id) references run (id) not valid;
alter table review drop constraint review_account_id_run_id_fkey,
  add constraint review_run_id_fkey foreign key (run_id) references run (id) not valid;
alter table run drop constraint run_account_id_again_of_fkey,
  add constraint run_again_of_fkey foreign key (again_of) references run (id) not valid;
alter table run_credential drop constraint run_credential_account_id_run_id_fkey,
  add constraint run_credential_run_id_fkey foreign key (run_id) references run (id) not valid;
alter table run_input drop constraint run_input_account_id_run_id_fkey,
  add constraint run_input_run_id_fkey foreign key (run_id) references run (id) not valid;
alter table run_poll drop constraint run_poll_account_id_run_id_fkey,
  add constraint run_poll_run_id_fkey foreign key (run_id) references run (id) not valid;
alter table run_result drop constraint run_result_account_id_run_id_fkey,
  add constraint run_result_run_id_fkey foreign key (run_id) references run (id) not valid;
alter table run_step drop constraint run_step_account_id_run_id_fkey,
  add constraint run_step_run_id_fkey foreign key (run_id) references run (id) not valid;
alter table run_turn drop constraint run_turn_account_id_run_id_fkey,
  add constraint run_turn_run_id_fkey foreign key (run_id) references run (id) not valid;
alter table run_write drop constraint run_write_account_id_run_id_fkey,
  add constraint run_write_run_id_fkey foreign key (run_id) references run (id) not valid;

-- It served those references alone, and every new version of a run was entered in it.
alter table run drop constraint run_account_id_id_key;

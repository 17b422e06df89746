-- The rows from before. Reads and writes go on meanwhile.
alter table blob validate constraint blob_run_id_fkey;
alter table review validate constraint review_run_id_fkey;
alter table run validate constraint run_again_of_fkey;
alter table run_credential validate constraint run_credential_run_id_fkey;
alter table run_input validate constraint run_input_run_id_fkey;
alter table run_poll validate constraint run_poll_run_id_fkey;
alter table run_result validate constraint run_result_run_id_fkey;
alter table run_step validate constraint run_step_run_id_fkey;
alter table run_turn validate constraint run_turn_run_id_fkey;
alter table run_write validate constraint run_write_run_id_fkey;

-- The rows of a journal, inputs and results are written by the statement that makes their run, or that holds its lease, so no check of a
-- reference can fail; each cost a look at the run and a lock of its row. Runs are never deleted. Invariant V15 still compares all rows.
-- The run first, its rows without waiting: a statement that has one of them and waits for the run would be waited for in turn.
lock table run in access exclusive mode;
lock table run_input, run_poll, run_result, run_step, run_turn, run_write in access exclusive mode nowait;

alter table run_input drop constraint run_input_run_id_fkey;
alter table run_poll drop constraint run_poll_run_id_fkey;
alter table run_result drop constraint run_result_run_id_fkey;
alter table run_step drop constraint run_step_run_id_fkey;
alter table run_turn drop constraint run_turn_run_id_fkey;
alter table run_write drop constraint run_write_run_id_fkey;

-- A run that was begun and that nobody holds (handed back, or of a lost worker) goes on by its row alone: whoever has room takes it, and
-- not before this. Null: at once. It was the time of a job until now.
alter table run add column not_before timestamptz;

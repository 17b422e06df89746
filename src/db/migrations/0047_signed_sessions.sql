-- Whose an operator's session is, and since when a second factor counts in it: as operators themselves.
alter table operator_session add column row_serial bigint, add column row_mac bytea check (octet_length(row_mac) = 32);

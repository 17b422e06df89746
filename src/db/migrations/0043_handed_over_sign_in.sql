-- An end user came back to a process that can't open the client's secret: what the target answered, for a process that can. Encrypted
-- under a key that the signing key gives, and gone when it is taken or given up.
alter table oauth_attempt add column answer bytea check (octet_length(answer) > 0);

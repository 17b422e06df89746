-- The accounts that an operator is limited to; null: all of them. Signed with the rest of the row.
alter table operator add column account_ids text[] check (cardinality(account_ids) > 0);

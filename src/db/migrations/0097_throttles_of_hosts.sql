-- A row of `throttle_slot` may belong to a host in an account's `throttle` instead of a node: then `blueprint_id` is the account's id, and
-- `node_id` the host's origin (docs/accounts.md#throttle).
alter table throttle_slot drop constraint throttle_slot_account_id_blueprint_id_fkey;

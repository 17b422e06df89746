-- When an operator last signed in: sessions that ended are deleted, and the audit log has no index for it.
alter table operator add column signed_in_at timestamptz;

update operator set signed_in_at = (
  select max(created_at) from operator_session where operator_session.operator_id = operator.id
);

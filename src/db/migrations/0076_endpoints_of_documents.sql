-- Endpoints that the account's document has: applying it creates, changes and deletes them.
alter table webhook_endpoint add column is_from_document boolean not null default false;
create unique index webhook_endpoint_of_document on webhook_endpoint (account_id, url) where is_from_document;

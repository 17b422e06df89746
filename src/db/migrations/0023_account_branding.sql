-- How an account appears on the hosted pages. The document says it; these are what a page needs of it.
alter table account add column branding jsonb;

-- The picture that `branding.logo_url` holds, apart from the row that every request of the account reads. Pages name it by
-- its content, so that a browser keeps it until it changes.
create table account_logo (
  account_id text primary key references account,
  sha256 bytea not null check (octet_length(sha256) = 32),
  media_type text not null check (media_type in ('image/png', 'image/jpeg', 'image/webp')),
  content bytea not null check (octet_length(content) between 1 and 32768)
);
create index account_logo_sha256 on account_logo (sha256);

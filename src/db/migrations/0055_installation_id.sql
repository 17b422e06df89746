-- Names the installation in its object store: two must not share one.
alter table installation add column id uuid not null default gen_random_uuid();

-- compatible back to 0088
-- Candidates that are left when nobody waits for them any more.
create index concurrently credential_candidate on credential (candidate_at) where candidate_at is not null;

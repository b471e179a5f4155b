-- The field's words for two earlier names.
ALTER TABLE paces RENAME TO rate_limits; -- levels of tenants' token buckets (tokens_per_minute), for all workers together
ALTER TABLE requests RENAME COLUMN deaths TO crash_count; -- workers that crashed while they had it, perhaps among others
ALTER TABLE requests RENAME COLUMN alone TO isolated_starts; -- how often it was started with no other in-flight request
ALTER INDEX paces_pkey RENAME TO rate_limits_pkey;

-- What organisations are called, whether they may call, and what they are granted. What the configuration file says of
-- a limit wins; what neither has is at its default.
ALTER TABLE organisations ADD COLUMN display_name TEXT NOT NULL DEFAULT ''; -- for people
ALTER TABLE organisations ADD COLUMN disabled_at INTEGER; -- ms since the epoch; none of its keys and tokens is accepted while it is set
ALTER TABLE organisations ADD COLUMN weight INTEGER CHECK (weight BETWEEN 1 AND 1000); -- fair-share weight
ALTER TABLE organisations ADD COLUMN max_runs INTEGER CHECK (max_runs >= 1); -- runs that may live at once
ALTER TABLE organisations ADD COLUMN max_queued_tokens INTEGER CHECK (max_queued_tokens >= 1); -- tokens of unfinished requests
ALTER TABLE organisations ADD COLUMN tokens_per_minute INTEGER CHECK (tokens_per_minute >= 1); -- rate limit
ALTER TABLE organisations ADD COLUMN max_storage_bytes INTEGER CHECK (max_storage_bytes >= 1); -- bytes of checkpoints
ALTER TABLE organisations ADD COLUMN max_queued_requests INTEGER CHECK (max_queued_requests >= 1); -- unfinished training requests
ALTER TABLE organisations ADD COLUMN max_queued_bytes INTEGER CHECK (max_queued_bytes >= 1); -- bytes of their payloads

-- The end of its export ends the check of an upload, on behalf of who asked for that.
ALTER TABLE uploads ADD COLUMN checked_by TEXT; -- JSON object: actor and call that began the check
CREATE INDEX uploads_by_run ON uploads (run_id) WHERE run_id IS NOT NULL;

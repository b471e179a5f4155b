-- Limit: sessions that are open, or that ended within the retention time.
ALTER TABLE organisations ADD COLUMN max_sessions BIGINT CHECK (max_sessions >= 1);
-- They are counted when a session is created.
CREATE INDEX sessions_kept ON sessions (tenant) WHERE NOT collected;

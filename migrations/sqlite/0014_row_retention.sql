-- Rows of ended sessions are deleted once nothing needs them. What a statement looks up in a growing table has an index.
ALTER TABLE sessions ADD COLUMN collected INTEGER NOT NULL DEFAULT 0 CHECK (collected IN (0, 1)); -- 1: ended long ago, and only checkpoints of its runs keep its row
DROP INDEX sessions_ended;
CREATE INDEX sessions_uncollected ON sessions (ended_at) WHERE ended_at IS NOT NULL AND NOT collected;
CREATE INDEX sessions_active ON sessions (tenant) WHERE status = 'active';

CREATE INDEX sampling_sessions_of_run ON sampling_sessions (run_id, snapshot_dir) WHERE run_id IS NOT NULL;
CREATE INDEX sampling_sessions_by_key ON sampling_sessions (session_id, snapshot, seq_id) WHERE snapshot IS NOT NULL;

-- In the order of the list.
DROP INDEX checkpoints_by_tenant;
CREATE INDEX checkpoints_by_tenant ON checkpoints (tenant, created_at DESC, run_id, kind, name);

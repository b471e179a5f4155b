-- Who executes what. A write of a worker names its lease and is refused when that has passed to another.
ALTER TABLE runs ADD COLUMN base_model TEXT NOT NULL DEFAULT ''; -- name, as in spec
UPDATE runs SET base_model = spec::json ->> 'base_model';
ALTER TABLE runs ADD COLUMN worker_id TEXT; -- who holds the lease; NULL is nobody
ALTER TABLE runs ADD COLUMN epoch BIGINT  NOT NULL DEFAULT 0; -- counts the leases
ALTER TABLE runs ADD COLUMN snapshot_seq BIGINT; -- the last seq_id whose effects the newest snapshot holds
ALTER TABLE runs ADD COLUMN snapshot_dir TEXT; -- where that snapshot is
CREATE INDEX runs_by_worker ON runs (worker_id) WHERE worker_id IS NOT NULL;
CREATE INDEX runs_unowned ON runs (base_model) WHERE worker_id IS NULL;

ALTER TABLE sampling_sessions ADD COLUMN snapshot_dir TEXT; -- where the snapshot was written to, once it was

ALTER TABLE requests ADD COLUMN worker_id TEXT; -- of a sample: who executes it; NULL is nobody
ALTER TABLE requests ADD COLUMN claim BIGINT  NOT NULL DEFAULT 0; -- of a sample: counts who took it
ALTER TABLE requests ADD COLUMN tokens BIGINT  NOT NULL DEFAULT 0; -- what it costs, for fair shares and quotas
CREATE INDEX requests_by_worker ON requests (worker_id) WHERE worker_id IS NOT NULL AND finished_at IS NULL;
DROP INDEX requests_unfinished;
CREATE INDEX requests_unfinished ON requests (run_id, sampling_session_id) WHERE finished_at IS NULL;
DROP INDEX requests_droppable;
CREATE INDEX requests_droppable ON requests (finished_at) WHERE finished_at IS NOT NULL AND NOT dropped;
DROP INDEX requests_acknowledged;
CREATE INDEX requests_acknowledged ON requests (acknowledged_at) WHERE acknowledged_at IS NOT NULL AND NOT dropped;

ALTER TABLE sessions ADD COLUMN last_seen_at BIGINT  NOT NULL DEFAULT 0; -- ms since the epoch; of the last sign of life, to some seconds
CREATE INDEX sessions_silent ON sessions (last_seen_at) WHERE status = 'active';

-- Snapshots for sampling that are not used any more leave the storage.
ALTER TABLE sampling_sessions ADD COLUMN collected BOOLEAN NOT NULL DEFAULT FALSE; -- TRUE: snapshot_dir was deleted, and samples fail
DROP INDEX sampling_sessions_of_run;
CREATE INDEX sampling_sessions_of_run ON sampling_sessions (run_id, collected, snapshot_dir) WHERE run_id IS NOT NULL;

-- When the last sample of a sampling session ended.
CREATE INDEX requests_sampled ON requests (sampling_session_id, finished_at) WHERE event IS NOT NULL;

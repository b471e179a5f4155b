-- What waits to be trained is bounded in bytes and in requests.
ALTER TABLE requests ADD COLUMN payload_bytes INTEGER NOT NULL DEFAULT 0; -- of its payload when it was accepted
CREATE INDEX requests_queued_training ON requests (tenant, run_id, seq_id, payload_bytes) WHERE finished_at IS NULL AND run_id IS NOT NULL;

-- Positions in the run's order before this one have ended. Rows of their requests may be missing: garbage collection
-- deletes them while the session is open, and the requests are never executed again.
ALTER TABLE runs ADD COLUMN ended_before INTEGER NOT NULL DEFAULT 0 CHECK (ended_before >= 0);
-- Requests whose results were deleted and that no recovery executes.
CREATE INDEX requests_ended ON requests (finished_at, arrival) WHERE dropped AND NOT replays;
-- Sampling sessions without weights, which garbage collection deletes while their sessions are open.
CREATE INDEX sampling_sessions_collected ON sampling_sessions (created_at, id) WHERE collected;
-- Position in the run's order up to which metrics are thinned out, and the first step of which all are kept.
ALTER TABLE runs ADD COLUMN metrics_thinned_to INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN metrics_complete_from INTEGER NOT NULL DEFAULT 0;
-- An older program would execute a deleted request again, and wait for one that is missing.
UPDATE schema_compatibility SET oldest_program = 40;

-- Samples of runs whose owners want to look at them, sessions of browsers that were logged out, and what engines hold.
CREATE TABLE run_samples (
    run_id              TEXT   NOT NULL REFERENCES runs (id) ON DELETE CASCADE, -- whose weights sampled it
    at                  BIGINT NOT NULL, -- ms since the epoch; when it ended
    request_id          TEXT   NOT NULL, -- the sample
    tenant              TEXT   NOT NULL, -- owner
    sampling_session_id TEXT   NOT NULL, -- where it was sampled
    size_bytes          BIGINT NOT NULL, -- of the content
    content             BYTEA  NOT NULL, -- prompt, tokens and log-probabilities; see server/src/wire/run_samples.rs
    PRIMARY KEY (run_id, at, request_id)
);
CREATE INDEX run_samples_by_tenant ON run_samples (tenant, size_bytes);

-- As for the other tables of tenants: see 0028.
CREATE POLICY of_tenant ON run_samples
    USING ((SELECT is_system_scope()) OR tenant = ANY ((SELECT tenants_in_scope())::text[]));
ALTER TABLE run_samples ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

ALTER TABLE sampling_sessions ADD COLUMN weights_of TEXT; -- the run that trained its weights, if one did

CREATE TABLE ended_browser_sessions (
    token_id   TEXT   NOT NULL PRIMARY KEY, -- of the session's token
    expires_at BIGINT NOT NULL              -- ms since the epoch; when the token ends by itself
);
CREATE INDEX ended_browser_sessions_by_end ON ended_browser_sessions (expires_at);

ALTER TABLE workers ADD COLUMN engine TEXT; -- JSON: what its engine held at the last heartbeat

-- Programs between 28 and this one were never released.
UPDATE schema_compatibility SET oldest_program = 31;

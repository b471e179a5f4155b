-- Samples of runs whose owners want to look at them, sessions of browsers that were logged out, and what engines hold.
CREATE TABLE run_samples (
    run_id              TEXT    NOT NULL REFERENCES runs (id) ON DELETE CASCADE, -- whose weights sampled it
    at                  INTEGER NOT NULL, -- ms since the epoch; when it ended
    request_id          TEXT    NOT NULL, -- the sample
    tenant              TEXT    NOT NULL, -- owner
    sampling_session_id TEXT    NOT NULL, -- where it was sampled
    size_bytes          INTEGER NOT NULL, -- of the content
    content             BLOB    NOT NULL, -- prompt, tokens and log-probabilities; see server/src/wire/run_samples.rs
    PRIMARY KEY (run_id, at, request_id)
) STRICT;
CREATE INDEX run_samples_by_tenant ON run_samples (tenant, size_bytes);

ALTER TABLE sampling_sessions ADD COLUMN weights_of TEXT; -- the run that trained its weights, if one did

CREATE TABLE ended_browser_sessions (
    token_id   TEXT    NOT NULL PRIMARY KEY, -- of the session's token
    expires_at INTEGER NOT NULL              -- ms since the epoch; when the token ends by itself
) STRICT, WITHOUT ROWID;
CREATE INDEX ended_browser_sessions_by_end ON ended_browser_sessions (expires_at);

ALTER TABLE workers ADD COLUMN engine TEXT; -- JSON: what its engine held at the last heartbeat

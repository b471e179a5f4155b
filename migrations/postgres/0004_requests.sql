-- The request log: every accepted request, until its session has been over for long enough.
CREATE TABLE requests (
    arrival             BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- order of acceptance
    id                  TEXT    NOT NULL UNIQUE,      -- the future
    tenant              TEXT    NOT NULL,             -- owner
    session_id          TEXT    NOT NULL REFERENCES sessions (id), -- of the run or sampling session
    run_id              TEXT    REFERENCES runs (id), -- set unless it is a sample
    sampling_session_id TEXT    REFERENCES sampling_sessions (id), -- set when it is a sample
    seq_id              BIGINT  NOT NULL,             -- place in the run's order (0 creates it), or the sample's number
    kind                TEXT    NOT NULL,             -- RequestKind
    num_samples         BIGINT  NOT NULL DEFAULT 0,   -- completions that a sample asks for
    fingerprint         BYTEA   NOT NULL,             -- SHA-256 of kind and identity bytes; a retry must have the same
    state               TEXT    NOT NULL CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')), -- RequestState
    payload             BYTEA,                         -- what the worker gets, when small and still needed
    payload_file        TEXT,                         -- name of its file among the blobs, when large and still needed
    encoding            TEXT    CHECK (encoding IN ('json', 'protobuf')), -- of the result
    result              BYTEA,                         -- when small and not dropped
    result_file         TEXT,                         -- name of its file among the blobs, when large and not dropped
    result_size         BIGINT  NOT NULL DEFAULT 0,   -- bytes
    error               TEXT,                         -- JSON of OpError, when failed
    replays             BOOLEAN NOT NULL DEFAULT FALSE, -- TRUE: changed the run's memory, executed again after a restart
    event               BIGINT,                      -- place among the finished samples of (sampling_session_id, clone)
    clone               BIGINT,                      -- seq_id div 10^9 of a sample
    dropped             BOOLEAN NOT NULL DEFAULT FALSE, -- TRUE: the result was dropped
    acknowledged_at     BIGINT,                      -- ms since the epoch; the client has the result
    created_at          BIGINT  NOT NULL,             -- ms since the epoch
    finished_at         BIGINT,                      -- ms since the epoch
    CHECK ((run_id IS NULL) <> (sampling_session_id IS NULL)),
    CHECK ((state IN ('queued', 'running')) = (finished_at IS NULL))
);

CREATE UNIQUE INDEX requests_of_run ON requests (run_id, seq_id) WHERE run_id IS NOT NULL;
CREATE UNIQUE INDEX requests_of_sampling_session ON requests (sampling_session_id, seq_id) WHERE sampling_session_id IS NOT NULL;
CREATE UNIQUE INDEX requests_events ON requests (sampling_session_id, clone, event) WHERE event IS NOT NULL;
CREATE INDEX requests_unfinished ON requests (state) WHERE finished_at IS NULL;
CREATE INDEX requests_droppable ON requests (finished_at) WHERE finished_at IS NOT NULL AND NOT dropped;
CREATE INDEX requests_acknowledged ON requests (acknowledged_at) WHERE acknowledged_at IS NOT NULL AND NOT dropped;
CREATE INDEX requests_of_session ON requests (session_id, finished_at);

-- Training runs. Kept after their session, because checkpoints name them.
CREATE TABLE runs (
    id              TEXT    NOT NULL PRIMARY KEY, -- '<session_id>:train:<model_seq_id>'
    tenant          TEXT    NOT NULL,             -- owner
    session_id      TEXT    NOT NULL REFERENCES sessions (id), -- where it was created
    model_seq_id    BIGINT  NOT NULL,             -- the client's number within the session
    spec            TEXT    NOT NULL,             -- JSON of RunSpec
    state           TEXT    NOT NULL CHECK (state IN ('creating', 'ready', 'failed')), -- creating -> ready -> failed
    failure         TEXT,                         -- JSON of OpError: what later requests of a failed run are told
    corrupted       BOOLEAN NOT NULL DEFAULT FALSE, -- TRUE: could not be restored after a restart
    user_metadata   TEXT    NOT NULL,             -- JSON object of strings
    created_at      BIGINT  NOT NULL,             -- ms since the epoch
    last_request_at BIGINT  NOT NULL,             -- ms since the epoch; of the last submission
    UNIQUE (session_id, model_seq_id)
);

CREATE INDEX runs_by_tenant ON runs (tenant, created_at, id);

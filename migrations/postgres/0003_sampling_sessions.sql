-- Where samples get their weights.
CREATE TABLE sampling_sessions (
    id             TEXT    NOT NULL PRIMARY KEY, -- '<session_id>:sample:<seq_id>'
    tenant         TEXT    NOT NULL,             -- owner
    session_id     TEXT    NOT NULL REFERENCES sessions (id), -- where it was created
    seq_id         BIGINT  NOT NULL,             -- the client's number within the session
    base_model     TEXT    NOT NULL,             -- name
    model_path     TEXT,                         -- tinker:// path of a sampler checkpoint
    checkpoint_dir TEXT,                         -- folder of that checkpoint when this was created
    snapshot       TEXT,                         -- key of an in-memory snapshot
    run_id         TEXT    REFERENCES runs (id), -- whose snapshot it is
    request_id     TEXT,                         -- the save that made the snapshot, repeated after a restart
    created_at     BIGINT  NOT NULL,             -- ms since the epoch
    UNIQUE (session_id, seq_id)
);

CREATE INDEX sampling_sessions_by_request ON sampling_sessions (request_id) WHERE request_id IS NOT NULL;

-- What training requests measured, by request; deleted with the run.
CREATE TABLE run_metrics (
    run_id  TEXT    NOT NULL REFERENCES runs (id), -- the run
    step    INTEGER NOT NULL,                      -- optimizer steps of the run before this request
    seq_id  INTEGER NOT NULL,                      -- of the request
    tenant  TEXT    NOT NULL,                      -- owner
    kind    TEXT    NOT NULL,                      -- RequestKind
    at      INTEGER NOT NULL,                      -- ms since the epoch; when it ended
    metrics TEXT    NOT NULL,                      -- JSON: numbers by name, null for what is not finite
    PRIMARY KEY (run_id, step, seq_id)
) STRICT, WITHOUT ROWID;

-- The newest failures of a tenant.
CREATE INDEX requests_failed ON requests (tenant, finished_at) WHERE state = 'failed';

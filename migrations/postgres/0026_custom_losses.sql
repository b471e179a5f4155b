-- Losses that clients uploaded as graphs. A training request that uses one carries a copy of it.
CREATE TABLE custom_losses (
    id         TEXT   NOT NULL PRIMARY KEY, -- '<session_id>:loss:<seq_id>'
    tenant     TEXT   NOT NULL,             -- owner
    session_id TEXT   NOT NULL REFERENCES sessions (id), -- where it can be used
    seq_id     BIGINT NOT NULL,             -- the client's number within the session
    definition BYTEA  NOT NULL,             -- JSON: name, inputs and graph, as they were checked
    created_at BIGINT NOT NULL,             -- ms since the epoch
    UNIQUE (session_id, seq_id)
);

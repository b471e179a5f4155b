-- Saved checkpoints whose folders are complete.
CREATE TABLE checkpoints (
    run_id        TEXT    NOT NULL REFERENCES runs (id), -- first part of its path
    kind          TEXT    NOT NULL CHECK (kind IN ('weights', 'sampler_weights', 'external_weights')), -- second part
    name          TEXT    NOT NULL,             -- third part
    tenant        TEXT    NOT NULL,             -- owner
    spec          TEXT    NOT NULL,             -- JSON of RunSpec
    dir           TEXT    NOT NULL,             -- its folder
    size_bytes    BIGINT  NOT NULL,             -- of all its files
    public        BOOLEAN NOT NULL DEFAULT FALSE, -- TRUE: every tenant may read it
    user_metadata TEXT    NOT NULL,             -- JSON object of strings
    created_at    BIGINT  NOT NULL,             -- ms since the epoch
    expires_at    BIGINT,                      -- ms since the epoch; NULL is never
    PRIMARY KEY (run_id, kind, name)
);

CREATE INDEX checkpoints_by_tenant ON checkpoints (tenant, created_at);
CREATE INDEX checkpoints_expiring ON checkpoints (expires_at) WHERE expires_at IS NOT NULL;

-- Clients' sessions. Liveness (heartbeats) is kept in memory; a restart gives every session a fresh period.
CREATE TABLE sessions (
    id              TEXT    NOT NULL PRIMARY KEY, -- time-ordered UUID
    tenant          TEXT    NOT NULL,             -- owner
    idempotency_key TEXT,                         -- a repetition with this key returns this session
    tags            TEXT    NOT NULL,             -- JSON array of strings
    user_metadata   TEXT    NOT NULL,             -- JSON object
    sdk_version     TEXT    NOT NULL,             -- of the client
    project_id      TEXT,                         -- of the client
    display_name    TEXT,                         -- of the client
    status          TEXT    NOT NULL CHECK (status IN ('active', 'finished', 'expired')), -- active -> finished | expired
    finish_reason   TEXT    CHECK (finish_reason IN ('success', 'errored', 'interrupted')), -- given when finished
    finish_detail   TEXT,                         -- what the client said about it
    created_at      BIGINT  NOT NULL,             -- ms since the epoch
    ended_at        BIGINT,                      -- ms since the epoch; when it finished or expired
    CHECK ((status = 'active') = (ended_at IS NULL)),
    CHECK ((status = 'finished') = (finish_reason IS NOT NULL))
);

CREATE UNIQUE INDEX sessions_idempotency ON sessions (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX sessions_by_tenant ON sessions (tenant, created_at, id);
CREATE INDEX sessions_ended ON sessions (ended_at) WHERE ended_at IS NOT NULL;

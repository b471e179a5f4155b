-- What was used, by request and by checkpoint; kept when these are deleted.
ALTER TABLE sessions ADD COLUMN user_id TEXT; -- whose key created it; NULL when that was no user's

CREATE TABLE usage (
    request_id  TEXT    NOT NULL PRIMARY KEY, -- the request, which succeeded
    tenant      TEXT    NOT NULL,             -- owner
    at          INTEGER NOT NULL,             -- ms since the epoch; when it ended
    kind        TEXT    NOT NULL,             -- RequestKind
    base_model  TEXT    NOT NULL,             -- name
    session_id  TEXT    NOT NULL,             -- of the run or sampling session
    project_id  TEXT,                         -- of the session, at that time
    user_id     TEXT,                         -- of the session
    trained     INTEGER NOT NULL,             -- tokens of the examples of a forward or backward pass
    prefill     INTEGER NOT NULL,             -- tokens of a prompt that were computed
    cached      INTEGER NOT NULL,             -- tokens of a prompt that the prefix cache had
    sampled     INTEGER NOT NULL              -- tokens that were generated
) STRICT;

CREATE INDEX usage_of_tenant ON usage (tenant, at, request_id);

CREATE TABLE stored_checkpoints (
    run_id     TEXT    NOT NULL,              -- first part of the checkpoint's path
    kind       TEXT    NOT NULL,              -- second part
    name       TEXT    NOT NULL,              -- third part
    from_at    INTEGER NOT NULL,              -- ms since the epoch; when it was registered
    to_at      INTEGER,                       -- ms since the epoch; when it was deleted or replaced
    tenant     TEXT    NOT NULL,              -- owner
    base_model TEXT    NOT NULL,              -- name
    session_id TEXT    NOT NULL,              -- of the run
    project_id TEXT,                          -- of the session, at that time
    user_id    TEXT,                          -- of the session
    size_bytes INTEGER NOT NULL,              -- of all its files
    PRIMARY KEY (run_id, kind, name, from_at)
) STRICT;

CREATE INDEX stored_checkpoints_of_tenant ON stored_checkpoints (tenant, to_at);

INSERT INTO stored_checkpoints (run_id, kind, name, from_at, tenant, base_model, session_id, project_id, size_bytes)
SELECT checkpoints.run_id, checkpoints.kind, checkpoints.name, checkpoints.created_at, checkpoints.tenant, runs.base_model,
    runs.session_id, sessions.project_id, checkpoints.size_bytes
FROM checkpoints JOIN runs ON runs.id = checkpoints.run_id JOIN sessions ON sessions.id = runs.session_id;

-- The schema of a SQLite store. migrations/postgres/0001_initial.sql is the same schema for PostgreSQL.
-- docs/design/data-model.md describes how the tables relate and how their rows change.

-- Tenants
-- =======

-- Organisations: the tenants that own all other objects. Rows are never deleted. A limit that is NULL is the one of the
-- configuration file, or its default.
CREATE TABLE organisations (
    name                TEXT    NOT NULL PRIMARY KEY,  -- the tenant's name in every other table; never changes
    operator            INTEGER NOT NULL DEFAULT 0 CHECK (operator IN (0, 1)), -- 1: admins of this organisation manage all organisations
    created_at          INTEGER NOT NULL,              -- ms since the epoch
    display_name        TEXT    NOT NULL DEFAULT '',   -- name for people; empty if there is none
    disabled_at         INTEGER,                       -- ms since the epoch; while it is set, keys and tokens of the organisation are refused
    weight              INTEGER CHECK (weight BETWEEN 1 AND 1000), -- fair-share weight
    max_runs            INTEGER CHECK (max_runs >= 1), -- greatest number of live runs
    max_queued_tokens   INTEGER CHECK (max_queued_tokens >= 1), -- greatest sum of tokens of unfinished requests
    tokens_per_minute   INTEGER CHECK (tokens_per_minute >= 1), -- rate limit, in tokens
    max_storage_bytes   INTEGER CHECK (max_storage_bytes >= 1), -- greatest sum of bytes of checkpoints and stored samples
    max_queued_requests INTEGER CHECK (max_queued_requests >= 1), -- greatest number of unfinished training requests
    max_queued_bytes    INTEGER CHECK (max_queued_bytes >= 1) -- greatest sum of payload bytes of unfinished training requests
) STRICT;

-- Projects, by which an organisation groups its sessions.
CREATE TABLE projects (
    organisation TEXT    NOT NULL REFERENCES organisations (name), -- owner
    id           TEXT    NOT NULL, -- id that sessions refer to (`sessions.project_id`)
    name         TEXT    NOT NULL, -- name for people
    created_at   INTEGER NOT NULL, -- ms since the epoch
    PRIMARY KEY (organisation, id)
) STRICT;

-- Members of an organisation. Rows are never deleted.
CREATE TABLE users (
    id           TEXT    NOT NULL PRIMARY KEY, -- time-ordered UUID
    organisation TEXT    NOT NULL REFERENCES organisations (name), -- organisation that the user belongs to
    email        TEXT    NOT NULL,             -- address; unique within the organisation
    name         TEXT    NOT NULL,             -- name for people
    role         TEXT    NOT NULL CHECK (role IN ('admin', 'member', 'read-only')), -- upper bound of what the user's keys allow
    created_at   INTEGER NOT NULL,             -- ms since the epoch
    disabled_at  INTEGER,                      -- ms since the epoch; while it is set, keys of the user are refused
    UNIQUE (organisation, email)
) STRICT;

-- API keys. Rows are never deleted: a key ends at `expires_at` or `revoked_at`, whichever comes first.
CREATE TABLE api_keys (
    id           INTEGER NOT NULL PRIMARY KEY,  -- random number below 2^53
    digest       BLOB    NOT NULL UNIQUE,       -- SHA-256 of the key; the key itself is not stored
    organisation TEXT    NOT NULL REFERENCES organisations (name), -- tenant of requests made with the key
    user_id      TEXT    REFERENCES users (id), -- user that owns the key; NULL for a program of the organisation
    name         TEXT    NOT NULL,              -- name for people
    note         TEXT    NOT NULL,              -- remark for people
    hint         TEXT    NOT NULL,              -- first characters of the key, to recognise it by
    role         TEXT    NOT NULL CHECK (role IN ('admin', 'member', 'read-only')), -- upper bound of what the key allows
    scopes       TEXT,                          -- JSON array of the scopes that the key is restricted to; NULL for all of its role
    created_at   INTEGER NOT NULL,              -- ms since the epoch
    expires_at   INTEGER,                       -- ms since the epoch; NULL for never
    revoked_at   INTEGER                        -- ms since the epoch; NULL unless it was revoked
) STRICT;

CREATE INDEX api_keys_of_organisation ON api_keys (organisation, created_at);
CREATE INDEX api_keys_of_user ON api_keys (user_id) WHERE user_id IS NOT NULL;

-- Actions that must be accounted for, inserted by the transaction that performs them. Triggers refuse every change.
CREATE TABLE audit_log (
    id           TEXT    NOT NULL PRIMARY KEY, -- time-ordered UUID
    at           INTEGER NOT NULL,             -- ms since the epoch
    organisation TEXT    NOT NULL,             -- owner of the affected object
    category     TEXT    NOT NULL CHECK (category IN ('checkpoints', 'projects', 'teams', 'organizations')), -- kind of the affected object
    event        TEXT    NOT NULL,             -- action, such as 'checkpoint_delete'
    subject      TEXT    NOT NULL,             -- id, name or path of the affected object
    details      TEXT    NOT NULL,             -- JSON object with what else the action says
    actor        TEXT    NOT NULL,             -- description of the caller
    key_id       INTEGER,                      -- API key that was used (`api_keys.id`); NULL for a key of the configuration file
    request_id   TEXT,                         -- `x-request-id` of the call
    address      TEXT                          -- network address that the call came from
) STRICT;

CREATE INDEX audit_log_of_organisation ON audit_log (organisation, at, id);

CREATE TRIGGER audit_log_is_not_changed BEFORE UPDATE ON audit_log
BEGIN
    SELECT RAISE(ABORT, 'the audit log is appended only');
END;

CREATE TRIGGER audit_log_is_not_deleted BEFORE DELETE ON audit_log
BEGIN
    SELECT RAISE(ABORT, 'the audit log is appended only');
END;

-- Sessions, runs and requests
-- ===========================

-- Sessions of clients.
CREATE TABLE sessions (
    id              TEXT    NOT NULL PRIMARY KEY, -- time-ordered UUID
    tenant          TEXT    NOT NULL,             -- owner
    idempotency_key TEXT,                         -- client's key of the creation; a repetition with the same key returns this session
    tags            TEXT    NOT NULL,             -- JSON array of strings, from the client
    user_metadata   TEXT    NOT NULL,             -- JSON object, from the client
    sdk_version     TEXT    NOT NULL,             -- version of the client's SDK
    project_id      TEXT,                         -- project that the client named (`projects.id`)
    display_name    TEXT,                         -- name for people, from the client
    status          TEXT    NOT NULL CHECK (status IN ('active', 'finished', 'expired')), -- active -> finished | expired; expired -> active
    finish_reason   TEXT    CHECK (finish_reason IN ('success', 'errored', 'interrupted')), -- client's reason; set when finished
    finish_detail   TEXT,                         -- client's words about the reason
    created_at      INTEGER NOT NULL,             -- ms since the epoch
    ended_at        INTEGER,                      -- ms since the epoch; set when finished or expired
    last_seen_at    INTEGER NOT NULL DEFAULT 0,   -- ms since the epoch; last heartbeat or submission, to within ten seconds
    collected       INTEGER NOT NULL DEFAULT 0 CHECK (collected IN (0, 1)), -- 1: ended long ago, and kept only because checkpoints refer to its runs
    user_id         TEXT,                         -- user whose key created the session (`users.id`)
    CHECK ((status = 'active') = (ended_at IS NULL)),
    CHECK ((status = 'finished') = (finish_reason IS NOT NULL))
) STRICT;

CREATE UNIQUE INDEX sessions_idempotency ON sessions (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;
-- Lists, of a tenant and of a project.
CREATE INDEX sessions_by_tenant ON sessions (tenant, created_at, id);
CREATE INDEX sessions_by_project ON sessions (tenant, project_id, created_at, id) WHERE project_id IS NOT NULL;
-- Sweeps: sessions that may expire, and ended ones that may be collected.
CREATE INDEX sessions_active ON sessions (tenant) WHERE status = 'active';
CREATE INDEX sessions_silent ON sessions (last_seen_at) WHERE status = 'active';
CREATE INDEX sessions_uncollected ON sessions (ended_at) WHERE ended_at IS NOT NULL AND NOT collected;

-- Training runs. A row outlives its session while checkpoints refer to it.
CREATE TABLE runs (
    id               TEXT    NOT NULL PRIMARY KEY, -- '<session_id>:train:<model_seq_id>'
    tenant           TEXT    NOT NULL,             -- owner
    session_id       TEXT    NOT NULL REFERENCES sessions (id), -- session that created the run
    model_seq_id     INTEGER NOT NULL,             -- client's number of the run within the session
    spec             TEXT    NOT NULL,             -- JSON of `RunSpec`: base model, adapter, optimizer, head
    state            TEXT    NOT NULL CHECK (state IN ('creating', 'ready', 'failed')), -- creating -> ready -> failed, or creating -> failed
    failure          TEXT,                         -- JSON of `OpError`: the error of every later request; set when failed
    corrupted        INTEGER NOT NULL DEFAULT 0 CHECK (corrupted IN (0, 1)), -- 1: could not be restored, or its memory may be inconsistent
    user_metadata    TEXT    NOT NULL,             -- JSON object of strings, from the client
    created_at       INTEGER NOT NULL,             -- ms since the epoch
    last_request_at  INTEGER NOT NULL,             -- ms since the epoch; last submission
    base_model       TEXT    NOT NULL DEFAULT '',  -- name of the base model, as in `spec`
    worker_id        TEXT,                         -- worker that holds the lease (`workers.id`); NULL for none
    epoch            INTEGER NOT NULL DEFAULT 0,   -- number of leases so far; a write under an older one changes nothing
    snapshot_seq     INTEGER,                      -- last `seq_id` whose effects the newest snapshot contains
    snapshot_dir     TEXT,                         -- folder of the newest snapshot in the storage
    memory_wait      TEXT,                         -- JSON: memory that the run waits for, and the epoch under which it waits; NULL unless it waits
    weights          TEXT,                         -- digest of the base weights that its results are computed with, as in `worker_numerics`
    arithmetic       TEXT,                         -- arithmetic that its results are computed with, as in `worker_numerics`
    numerics_changes TEXT,                         -- JSON array: when `arithmetic` changed, from what and to what; NULL if it never did
    listed           INTEGER NOT NULL DEFAULT 1 CHECK (listed IN (0, 1)), -- 0: exists only for a download, and no listing shows it
    imported_from    TEXT,                         -- source that its checkpoint was copied or uploaded from; such a run cannot be trained
    UNIQUE (session_id, model_seq_id)
) STRICT;

CREATE INDEX runs_by_tenant ON runs (tenant, created_at, id);
-- Leases: those of a worker, and runs that anyone may claim.
CREATE INDEX runs_by_worker ON runs (worker_id) WHERE worker_id IS NOT NULL;
CREATE INDEX runs_unowned ON runs (base_model) WHERE worker_id IS NULL;
-- Folders that are still needed.
CREATE INDEX runs_by_snapshot ON runs (snapshot_dir) WHERE snapshot_dir IS NOT NULL;

-- Sampling sessions: the weights that samples are drawn from.
CREATE TABLE sampling_sessions (
    id             TEXT    NOT NULL PRIMARY KEY, -- '<session_id>:sample:<seq_id>'
    tenant         TEXT    NOT NULL,             -- owner
    session_id     TEXT    NOT NULL REFERENCES sessions (id), -- session that created it
    seq_id         INTEGER NOT NULL,             -- client's number within the session
    base_model     TEXT    NOT NULL,             -- name of the base model
    model_path     TEXT,                         -- tinker:// path of a sampler checkpoint; NULL for the base model or a snapshot
    checkpoint_dir TEXT,                         -- folder of that checkpoint at the time of the creation
    snapshot       TEXT,                         -- key of an in-memory snapshot
    run_id         TEXT    REFERENCES runs (id), -- run that the snapshot was taken of
    request_id     TEXT,                         -- save that took the snapshot, which a recovery repeats (`requests.id`)
    created_at     INTEGER NOT NULL,             -- ms since the epoch
    snapshot_dir   TEXT,                         -- folder that the snapshot was written to; NULL before
    collected      INTEGER NOT NULL DEFAULT 0 CHECK (collected IN (0, 1)), -- 1: `snapshot_dir` was deleted, and samples fail
    clones         INTEGER NOT NULL DEFAULT 0,   -- number of clones of the client that were given a number
    weights_of     TEXT,                         -- run that trained the weights; NULL for a base model
    UNIQUE (session_id, seq_id)
) STRICT;

CREATE INDEX sampling_sessions_by_request ON sampling_sessions (request_id) WHERE request_id IS NOT NULL;
-- Snapshots of a run, and those of a session by their key.
CREATE INDEX sampling_sessions_of_run ON sampling_sessions (run_id, collected, snapshot_dir) WHERE run_id IS NOT NULL;
CREATE INDEX sampling_sessions_by_key ON sampling_sessions (session_id, snapshot, seq_id) WHERE snapshot IS NOT NULL;
-- Folders that are still needed.
CREATE INDEX sampling_sessions_by_dir ON sampling_sessions (checkpoint_dir) WHERE checkpoint_dir IS NOT NULL;
CREATE INDEX sampling_sessions_by_snapshot ON sampling_sessions (snapshot_dir) WHERE snapshot_dir IS NOT NULL;

-- The request log: every accepted request, until its session has been over for long enough.
CREATE TABLE requests (
    arrival             INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- order of acceptance
    id                  TEXT    NOT NULL UNIQUE,      -- id of the future that the client polls
    tenant              TEXT    NOT NULL,             -- owner
    session_id          TEXT    NOT NULL REFERENCES sessions (id), -- session of the run or sampling session
    run_id              TEXT    REFERENCES runs (id), -- run; NULL for a sample
    sampling_session_id TEXT    REFERENCES sampling_sessions (id), -- sampling session of a sample; NULL for other requests
    seq_id              INTEGER NOT NULL,             -- place in the run's order (0 creates the run), or the sample's number
    kind                TEXT    NOT NULL,             -- `RequestKind`
    num_samples         INTEGER NOT NULL DEFAULT 0,   -- number of completions that a sample asks for
    fingerprint         BLOB    NOT NULL,             -- SHA-256 of kind and content, which a retry must repeat
    state               TEXT    NOT NULL CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')), -- `RequestState`
    payload             BLOB,                         -- content for the worker, if it is small and still needed
    payload_file        TEXT,                         -- name of the payload's file among the blobs, if it is large and still needed
    encoding            TEXT    CHECK (encoding IN ('json', 'protobuf')), -- encoding of the result
    result              BLOB,                         -- result, if it is small and retained
    result_file         TEXT,                         -- name of the result's file among the blobs, if it is large and retained
    result_size         INTEGER NOT NULL DEFAULT 0,   -- bytes of the result
    error               TEXT,                         -- JSON of `OpError`; set when failed
    replays             INTEGER NOT NULL DEFAULT 0 CHECK (replays IN (0, 1)), -- 1: determines the run's state, and a recovery executes it again
    event               INTEGER,                      -- place among the ended samples of (`sampling_session_id`, `clone`)
    clone               INTEGER,                      -- clone of the client that sent a sample: `seq_id` div 10^9
    dropped             INTEGER NOT NULL DEFAULT 0 CHECK (dropped IN (0, 1)), -- 1: the result was deleted
    acknowledged_at     INTEGER,                      -- ms since the epoch; the client confirmed that it has the result
    created_at          INTEGER NOT NULL,             -- ms since the epoch
    finished_at         INTEGER,                      -- ms since the epoch; set in every final state
    worker_id           TEXT,                         -- worker that executes a sample (`workers.id`); NULL for none
    claim               INTEGER NOT NULL DEFAULT 0,   -- number of claims of a sample so far; a write under an older one changes nothing
    tokens              INTEGER NOT NULL DEFAULT 0,   -- cost in tokens, for fair shares and quotas
    crash_count         INTEGER NOT NULL DEFAULT 0,   -- crashes of workers that may have been executing it, weighted by evidence
    isolated_starts     INTEGER NOT NULL DEFAULT 0,   -- starts with no other request in flight
    stores              TEXT,                         -- kind of the checkpoint that it writes (`checkpoints.kind`); NULL for none
    payload_bytes       INTEGER NOT NULL DEFAULT 0,   -- bytes of the payload when it was accepted
    recorded_at         INTEGER,                      -- ms since the epoch; last use of a sample whose sequences training requests may name
    CHECK ((run_id IS NULL) <> (sampling_session_id IS NULL)),
    CHECK ((state IN ('queued', 'running')) = (finished_at IS NULL))
) STRICT;

-- Identity: a retry finds its request.
CREATE UNIQUE INDEX requests_of_run ON requests (run_id, seq_id) WHERE run_id IS NOT NULL;
CREATE UNIQUE INDEX requests_of_sampling_session ON requests (sampling_session_id, seq_id) WHERE sampling_session_id IS NOT NULL;
-- Ended samples, in the order in which `retrieve_futures` returns them, and the time of the last one.
CREATE UNIQUE INDEX requests_events ON requests (sampling_session_id, clone, event) WHERE event IS NOT NULL;
CREATE INDEX requests_sampled ON requests (sampling_session_id, finished_at) WHERE event IS NOT NULL;
-- Work: unfinished requests, and those of a worker.
CREATE INDEX requests_unfinished ON requests (run_id, sampling_session_id) WHERE finished_at IS NULL;
CREATE INDEX requests_by_worker ON requests (worker_id) WHERE worker_id IS NOT NULL AND finished_at IS NULL;
-- Quotas: sums over unfinished requests of a tenant.
CREATE INDEX requests_open_tokens ON requests (tenant, tokens) WHERE finished_at IS NULL;
CREATE INDEX requests_storing ON requests (tenant) WHERE finished_at IS NULL AND stores IS NOT NULL;
CREATE INDEX requests_queued_training ON requests (tenant, run_id, seq_id, payload_bytes) WHERE finished_at IS NULL AND run_id IS NOT NULL;
-- Retention: results that may be deleted, and requests of a session.
CREATE INDEX requests_droppable ON requests (finished_at) WHERE finished_at IS NOT NULL AND NOT dropped;
CREATE INDEX requests_acknowledged ON requests (acknowledged_at) WHERE acknowledged_at IS NOT NULL AND NOT dropped;
CREATE INDEX requests_recorded ON requests (recorded_at) WHERE recorded_at IS NOT NULL AND NOT dropped;
CREATE INDEX requests_of_session ON requests (session_id, finished_at);
-- The newest failures of a tenant.
CREATE INDEX requests_failed ON requests (tenant, finished_at) WHERE state = 'failed';

-- Folders that `load_weights` requests read. A folder is kept for recovery even if its checkpoint is deleted or replaced.
CREATE TABLE loads (
    request_id TEXT    NOT NULL PRIMARY KEY REFERENCES requests (id) ON DELETE CASCADE, -- the request
    dir        TEXT    NOT NULL -- folder that it reads, in the storage
) STRICT;

CREATE INDEX loads_by_dir ON loads (dir);

-- Losses that clients uploaded as graphs. Rows never change: a training request carries a copy of the definition.
CREATE TABLE custom_losses (
    id         TEXT    NOT NULL PRIMARY KEY,              -- '<session_id>:loss:<seq_id>'
    tenant     TEXT    NOT NULL,                          -- owner
    session_id TEXT    NOT NULL REFERENCES sessions (id), -- session in which it can be used
    seq_id     INTEGER NOT NULL,                          -- client's number within the session
    definition BLOB    NOT NULL,                          -- JSON: name, inputs and graph, checked against the allow-list
    created_at INTEGER NOT NULL,                          -- ms since the epoch
    UNIQUE (session_id, seq_id)
) STRICT;

-- Checkpoints and what runs produce
-- =================================

-- Saved checkpoints. A row is inserted once its folder is complete.
CREATE TABLE checkpoints (
    run_id        TEXT    NOT NULL REFERENCES runs (id), -- first part of the path: the run
    kind          TEXT    NOT NULL CHECK (kind IN ('weights', 'sampler_weights', 'external_weights')), -- second part of the path
    name          TEXT    NOT NULL,                      -- third part of the path
    tenant        TEXT    NOT NULL,                      -- owner
    spec          TEXT    NOT NULL,                      -- JSON of `RunSpec`
    dir           TEXT    NOT NULL,                      -- folder in the storage; a copy has that of its source
    size_bytes    INTEGER NOT NULL,                      -- bytes of all files
    public        INTEGER NOT NULL DEFAULT 0 CHECK (public IN (0, 1)), -- 1: every tenant may read it
    user_metadata TEXT    NOT NULL,                      -- JSON object of strings, from the client
    created_at    INTEGER NOT NULL,                      -- ms since the epoch
    expires_at    INTEGER,                               -- ms since the epoch; NULL for never
    PRIMARY KEY (run_id, kind, name)
) STRICT;

-- Lists and searches read these backwards; a search continues behind the last row of a page.
CREATE INDEX checkpoints_by_tenant ON checkpoints (tenant, created_at, run_id, kind, name);
CREATE INDEX checkpoints_public ON checkpoints (created_at, run_id, kind, name) WHERE public;
-- Garbage collection: expired rows, and folders that are still needed.
CREATE INDEX checkpoints_expiring ON checkpoints (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX checkpoints_by_dir ON checkpoints (dir);

-- Adapters that clients upload. An upload becomes a checkpoint once its files are complete and checked.
CREATE TABLE uploads (
    id         TEXT    NOT NULL PRIMARY KEY, -- time-ordered UUID
    tenant     TEXT    NOT NULL,             -- owner
    spec       TEXT    NOT NULL,             -- JSON of `RunSpec` that the adapter must match
    project_id TEXT,                         -- project of the checkpoint's session (`projects.id`)
    dir        TEXT    NOT NULL UNIQUE,      -- folder of the pieces in the storage
    totals     TEXT    NOT NULL,             -- JSON object: bytes of each file whose size is known
    bytes      INTEGER NOT NULL,             -- bytes of all files as far as known; count against the storage quota while the upload is open
    run_id     TEXT,                         -- run that checks the adapter; once it is set, no file can be changed
    path       TEXT,                         -- path of the checkpoint that it became
    failure    TEXT,                         -- JSON of `OpError`: why it was refused
    created_at INTEGER NOT NULL,             -- ms since the epoch
    expires_at INTEGER NOT NULL,             -- ms since the epoch; then the upload is deleted with its pieces
    checked_by TEXT                          -- JSON object: actor and call that began the check, for the audit log
) STRICT;

CREATE INDEX uploads_by_tenant ON uploads (tenant, created_at);
CREATE INDEX uploads_by_run ON uploads (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX uploads_expiring ON uploads (expires_at);

-- Received pieces of uploaded files. The pieces of a file have no gaps in the order of `start`.
CREATE TABLE upload_pieces (
    upload_id TEXT    NOT NULL REFERENCES uploads (id), -- upload that the piece belongs to
    file      TEXT    NOT NULL,                         -- name of the uploaded file
    start     INTEGER NOT NULL,                         -- offset of the first byte in the file
    length    INTEGER NOT NULL,                         -- bytes of the piece
    name      TEXT    NOT NULL,                         -- name of the piece's own file in the upload's folder
    PRIMARY KEY (upload_id, file, start)
) STRICT;

-- Metrics of training requests that succeeded. Rows are deleted with their run.
CREATE TABLE run_metrics (
    run_id  TEXT    NOT NULL REFERENCES runs (id), -- the run
    step    INTEGER NOT NULL,                      -- optimizer steps of the run before this request
    seq_id  INTEGER NOT NULL,                      -- `seq_id` of the request
    tenant  TEXT    NOT NULL,                      -- owner
    kind    TEXT    NOT NULL,                      -- `RequestKind`
    at      INTEGER NOT NULL,                      -- ms since the epoch; when the request ended
    metrics TEXT    NOT NULL,                      -- JSON object: numbers by name, null for one that is not finite
    PRIMARY KEY (run_id, step, seq_id)
) STRICT, WITHOUT ROWID;

-- Newest samples of runs whose `user_metadata` asks to store them.
CREATE TABLE run_samples (
    run_id              TEXT    NOT NULL REFERENCES runs (id) ON DELETE CASCADE, -- run whose weights were sampled
    at                  INTEGER NOT NULL, -- ms since the epoch; when the sample ended
    request_id          TEXT    NOT NULL, -- the sample (`requests.id`)
    tenant              TEXT    NOT NULL, -- owner
    sampling_session_id TEXT    NOT NULL, -- sampling session of the sample
    size_bytes          INTEGER NOT NULL, -- bytes of the content; count against the storage quota
    content             BLOB    NOT NULL, -- prompt, tokens and log-probabilities; see server/src/wire/run_samples.rs
    PRIMARY KEY (run_id, at, request_id)
) STRICT;

CREATE INDEX run_samples_by_tenant ON run_samples (tenant, size_bytes);

-- Usage
-- =====

-- Tokens that requests used, one row for each that succeeded. Rows outlive their requests.
CREATE TABLE usage (
    request_id TEXT    NOT NULL PRIMARY KEY, -- the request (`requests.id`)
    tenant     TEXT    NOT NULL,             -- owner
    at         INTEGER NOT NULL,             -- ms since the epoch; when the request ended
    kind       TEXT    NOT NULL,             -- `RequestKind`
    base_model TEXT    NOT NULL,             -- name of the base model
    session_id TEXT    NOT NULL,             -- session of the run or sampling session
    project_id TEXT,                         -- project of the session at that time
    user_id    TEXT,                         -- user of the session
    trained    INTEGER NOT NULL,             -- tokens of the examples of forward and backward passes
    prefill    INTEGER NOT NULL,             -- prompt tokens that were computed
    cached     INTEGER NOT NULL,             -- prompt tokens that the prefix cache contained
    sampled    INTEGER NOT NULL              -- generated tokens
) STRICT;

CREATE INDEX usage_of_tenant ON usage (tenant, at, request_id);

-- Periods in which checkpoints took storage. Rows outlive their checkpoints.
CREATE TABLE stored_checkpoints (
    run_id     TEXT    NOT NULL, -- first part of the checkpoint's path
    kind       TEXT    NOT NULL, -- second part of the checkpoint's path
    name       TEXT    NOT NULL, -- third part of the checkpoint's path
    from_at    INTEGER NOT NULL, -- ms since the epoch; when the checkpoint was registered
    to_at      INTEGER,          -- ms since the epoch; when it was deleted or replaced; NULL while it exists
    tenant     TEXT    NOT NULL, -- owner
    base_model TEXT    NOT NULL, -- name of the base model
    session_id TEXT    NOT NULL, -- session of the run
    project_id TEXT,             -- project of the session at that time
    user_id    TEXT,             -- user of the session
    size_bytes INTEGER NOT NULL, -- bytes of all files
    PRIMARY KEY (run_id, kind, name, from_at)
) STRICT;

CREATE INDEX stored_checkpoints_of_tenant ON stored_checkpoints (tenant, to_at);

-- Levels of the tenants' token buckets (`tokens_per_minute`), shared by all workers.
CREATE TABLE rate_limits (
    tenant TEXT    NOT NULL PRIMARY KEY, -- owner
    units  INTEGER NOT NULL,             -- level at `at`, in units of 1/60,000 token; negative for a debt
    at     INTEGER NOT NULL              -- ms since the epoch; time of the last withdrawal
) STRICT;

-- The service
-- ===========

-- Processes that execute requests.
CREATE TABLE workers (
    id            TEXT    NOT NULL PRIMARY KEY, -- id in the worker's data folder, by which a restart is recognised
    incarnation   INTEGER NOT NULL,             -- number of starts so far; a heartbeat of an older process is refused
    models        TEXT    NOT NULL,             -- JSON array of the names of its base models
    devices       TEXT    NOT NULL,             -- JSON array of descriptions of its devices
    registered_at INTEGER NOT NULL,             -- ms since the epoch
    expires_at    INTEGER NOT NULL,             -- ms since the epoch; a worker without a heartbeat until then is declared dead
    engine        TEXT                          -- JSON: what its engine held at the last heartbeat
) STRICT;

-- Numerics that decide the bits of a worker's results, by base model. A run continues only on a worker with the same.
CREATE TABLE worker_numerics (
    worker_id  TEXT    NOT NULL REFERENCES workers (id) ON DELETE CASCADE, -- the worker
    model      TEXT    NOT NULL, -- name of the base model
    weights    TEXT    NOT NULL, -- digest of the base weights
    arithmetic TEXT    NOT NULL, -- number type, kernels, layout and version
    PRIMARY KEY (worker_id, model)
) STRICT;

-- Base models that workers serve, as API servers describe them to clients.
CREATE TABLE base_models (
    name        TEXT    NOT NULL PRIMARY KEY, -- name that clients use
    description TEXT    NOT NULL              -- JSON of `BaseModel`
) STRICT;

-- Tokenizers and configurations of base models.
CREATE TABLE base_model_files (
    model   TEXT    NOT NULL REFERENCES base_models (name), -- the base model
    name    TEXT    NOT NULL,                               -- name of the file
    content BLOB    NOT NULL,                               -- bytes of the file
    PRIMARY KEY (model, name)
) STRICT;

-- Secrets that the processes of the service share: keys that sign URLs and tokens.
CREATE TABLE secrets (
    name  TEXT    NOT NULL PRIMARY KEY, -- purpose of the secret
    value BLOB    NOT NULL              -- random bytes
) STRICT;

-- Sessions of browsers that were logged out; every process refuses their tokens.
CREATE TABLE ended_browser_sessions (
    token_id   TEXT    NOT NULL PRIMARY KEY, -- id of the session's token
    expires_at INTEGER NOT NULL              -- ms since the epoch; when the token expires by itself
) STRICT, WITHOUT ROWID;

CREATE INDEX ended_browser_sessions_by_end ON ended_browser_sessions (expires_at);

-- Backups in progress. While a row is valid, no process removes objects from the storage.
CREATE TABLE backup_holds (
    id         TEXT    NOT NULL PRIMARY KEY, -- random UUID
    expires_at INTEGER NOT NULL              -- ms since the epoch, by the database's clock; the backup extends it while it copies
) STRICT;

-- One row: which programs can work with this schema, for programs that are older than it.
CREATE TABLE schema_compatibility (
    oldest_program INTEGER NOT NULL -- newest schema version known to the oldest such program; a migration that only adds leaves it
) STRICT;

INSERT INTO schema_compatibility (oldest_program) VALUES (31);

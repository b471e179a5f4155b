-- Adapters that clients upload: an upload becomes a checkpoint once its files are complete and were checked.
CREATE TABLE uploads (
    id         TEXT    NOT NULL PRIMARY KEY, -- a time-ordered UUID
    tenant     TEXT    NOT NULL,             -- owner
    spec       TEXT    NOT NULL,             -- JSON of RunSpec: what the adapter has to be
    project_id TEXT,                         -- of the checkpoint's session
    dir        TEXT    NOT NULL UNIQUE,      -- the folder of its pieces
    totals     TEXT    NOT NULL,             -- JSON object: bytes of each file whose size is known
    bytes      BIGINT  NOT NULL,             -- of all files, as far as they are known; counts against the storage quota while it is open
    run_id     TEXT,                         -- the run that checks it; its files can't be changed any more
    path       TEXT,                         -- the checkpoint that it became
    failure    TEXT,                         -- JSON of OpError: why it was refused
    created_at BIGINT  NOT NULL,             -- ms since the epoch
    expires_at BIGINT  NOT NULL              -- ms since the epoch: it is deleted then, with what arrived
);

CREATE INDEX uploads_by_tenant ON uploads (tenant, created_at);
CREATE INDEX uploads_expiring ON uploads (expires_at);

-- What arrived of a file: pieces without gaps, in the order of `start`.
CREATE TABLE upload_pieces (
    upload_id TEXT    NOT NULL REFERENCES uploads (id), -- its upload
    file      TEXT    NOT NULL,             -- the file that it is a part of
    start     BIGINT  NOT NULL,             -- offset of its first byte in the file
    length    BIGINT  NOT NULL,             -- bytes
    name      TEXT    NOT NULL,             -- its file in the upload's folder
    PRIMARY KEY (upload_id, file, start)
);

-- Lists and searches of checkpoints go through them backwards in this order; a search goes on behind the last one of a page.
DROP INDEX checkpoints_by_tenant;
CREATE INDEX checkpoints_by_tenant ON checkpoints (tenant, created_at, run_id, kind, name);
DROP INDEX checkpoints_public;
CREATE INDEX checkpoints_public ON checkpoints (created_at, run_id, kind, name) WHERE public;

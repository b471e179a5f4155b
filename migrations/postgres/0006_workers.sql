-- Processes that execute requests, and the base models that they serve.
CREATE TABLE workers (
    id            TEXT    NOT NULL PRIMARY KEY, -- kept in the worker's data folder, so that a restart is known to be one
    incarnation   BIGINT  NOT NULL,             -- counts its starts; a heartbeat of an older one is refused
    models        TEXT    NOT NULL,             -- JSON array of the names of its base models
    devices       TEXT    NOT NULL,             -- JSON array of descriptions
    registered_at BIGINT  NOT NULL,             -- ms since the epoch
    expires_at    BIGINT  NOT NULL              -- ms since the epoch; without a heartbeat until then it is taken for dead
);

-- What API servers tell clients about base models: written by the workers that serve them.
CREATE TABLE base_models (
    name        TEXT NOT NULL PRIMARY KEY, -- that clients use
    description TEXT NOT NULL              -- JSON of BaseModel
);

CREATE TABLE base_model_files (
    model   TEXT NOT NULL REFERENCES base_models (name), -- whose tokenizer or configuration it is
    name    TEXT NOT NULL,                               -- of the file
    content BYTEA NOT NULL,                               -- of the file
    PRIMARY KEY (model, name)
);

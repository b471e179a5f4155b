-- What decides the bits of results. A worker continues a run only with the same, or as it is told to.
CREATE TABLE worker_numerics (
    worker_id  TEXT NOT NULL REFERENCES workers (id) ON DELETE CASCADE, -- whose registration it belongs to
    model      TEXT NOT NULL, -- name of the base model
    weights    TEXT NOT NULL, -- digest of its weights
    arithmetic TEXT NOT NULL, -- how it computes: type, kernels, layout and version
    PRIMARY KEY (worker_id, model)
);

ALTER TABLE runs ADD COLUMN weights TEXT; -- as in worker_numerics, of the worker that executes it; NULL when it did not say
ALTER TABLE runs ADD COLUMN arithmetic TEXT; -- the same
ALTER TABLE runs ADD COLUMN numerics_changes TEXT; -- JSON array: when arithmetic changed, from what to what; NULL when it never did

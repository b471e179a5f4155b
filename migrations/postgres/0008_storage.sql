-- What runs were loaded from. A folder stays, for recovery, when its checkpoint was deleted or replaced.
CREATE TABLE loads (
    request_id TEXT    NOT NULL PRIMARY KEY REFERENCES requests (id) ON DELETE CASCADE, -- the load
    dir        TEXT    NOT NULL                                                         -- the folder, in the storage
);

-- Who needs a folder.
CREATE INDEX loads_by_dir ON loads (dir);
CREATE INDEX checkpoints_by_dir ON checkpoints (dir);
CREATE INDEX sampling_sessions_by_dir ON sampling_sessions (checkpoint_dir) WHERE checkpoint_dir IS NOT NULL;
CREATE INDEX sampling_sessions_by_snapshot ON sampling_sessions (snapshot_dir) WHERE snapshot_dir IS NOT NULL;
CREATE INDEX runs_by_snapshot ON runs (snapshot_dir) WHERE snapshot_dir IS NOT NULL;

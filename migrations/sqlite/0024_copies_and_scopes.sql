-- Copies of checkpoints, numbers of sampling clients' clones, listings of what all tenants may read, and projects.
ALTER TABLE runs ADD COLUMN listed INTEGER NOT NULL DEFAULT 1 CHECK (listed IN (0, 1)); -- 0: it exists for a download alone, and no listing shows it
UPDATE runs SET listed = 0 WHERE user_metadata LIKE '%"created_by":"tinker checkpoint download"%';
ALTER TABLE runs ADD COLUMN imported_from TEXT; -- what its checkpoint was copied or uploaded from; such a run can't be trained
ALTER TABLE sampling_sessions ADD COLUMN clones INTEGER NOT NULL DEFAULT 0; -- clones of clients that were given a number

CREATE INDEX checkpoints_public ON checkpoints (created_at DESC, run_id, kind, name) WHERE public;
CREATE INDEX sessions_by_project ON sessions (tenant, project_id, created_at, id) WHERE project_id IS NOT NULL;

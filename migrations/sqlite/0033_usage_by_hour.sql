-- Usage of tenants by hour, which outlives the rows of `usage` that were added up here.
CREATE TABLE usage_by_hour (
    tenant     TEXT    NOT NULL, -- owner
    hour       INTEGER NOT NULL, -- hours since the epoch
    base_model TEXT    NOT NULL, -- name of the base model
    session_id TEXT    NOT NULL, -- session of the run or sampling session
    project_id TEXT    NOT NULL, -- project of the session at that time; empty without one
    user_id    TEXT    NOT NULL, -- user of the session; empty without one
    trained    INTEGER NOT NULL, -- tokens of the examples of forward and backward passes
    prefill    INTEGER NOT NULL, -- prompt tokens that were computed
    cached     INTEGER NOT NULL, -- prompt tokens that the prefix cache contained
    sampled    INTEGER NOT NULL, -- generated tokens
    PRIMARY KEY (tenant, hour, session_id, base_model, project_id, user_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX usage_by_hour_by_age ON usage_by_hour (hour);

-- One row: how far `usage_by_hour` has got.
CREATE TABLE usage_progress (
    until_at INTEGER NOT NULL -- ms since the epoch; earlier rows of `usage` are added up
) STRICT;

INSERT INTO usage_progress (until_at) VALUES (0);

CREATE INDEX usage_by_age ON usage (at);
CREATE INDEX stored_checkpoints_by_end ON stored_checkpoints (to_at) WHERE to_at IS NOT NULL;

-- A transaction that prunes the audit log inserts a row here, which permits its deletions, and deletes it again.
CREATE TABLE audit_prunes (
    before_at INTEGER NOT NULL -- ms since the epoch; earlier entries are deleted
) STRICT;

DROP TRIGGER audit_log_is_not_deleted;

CREATE TRIGGER audit_log_is_not_deleted BEFORE DELETE ON audit_log
    WHEN NOT EXISTS (SELECT 1 FROM audit_prunes WHERE before_at > OLD.at)
BEGIN
    SELECT RAISE(ABORT, 'the audit log is appended only');
END;

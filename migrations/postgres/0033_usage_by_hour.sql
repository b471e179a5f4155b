-- Usage of tenants by hour, which outlives the rows of `usage` that were added up here.
CREATE TABLE usage_by_hour (
    tenant     TEXT    NOT NULL, -- owner
    hour       BIGINT  NOT NULL, -- hours since the epoch
    base_model TEXT    NOT NULL, -- name of the base model
    session_id TEXT    NOT NULL, -- session of the run or sampling session
    project_id TEXT    NOT NULL, -- project of the session at that time; empty without one
    user_id    TEXT    NOT NULL, -- user of the session; empty without one
    trained    BIGINT  NOT NULL, -- tokens of the examples of forward and backward passes
    prefill    BIGINT  NOT NULL, -- prompt tokens that were computed
    cached     BIGINT  NOT NULL, -- prompt tokens that the prefix cache contained
    sampled    BIGINT  NOT NULL, -- generated tokens
    PRIMARY KEY (tenant, hour, session_id, base_model, project_id, user_id)
);

CREATE INDEX usage_by_hour_by_age ON usage_by_hour (hour);

-- One row: how far `usage_by_hour` has got.
CREATE TABLE usage_progress (
    until_at BIGINT NOT NULL -- ms since the epoch; earlier rows of `usage` are added up
);

INSERT INTO usage_progress (until_at) VALUES (0);

CREATE INDEX usage_by_age ON usage (at);
CREATE INDEX stored_checkpoints_by_end ON stored_checkpoints (to_at) WHERE to_at IS NOT NULL;

-- A transaction that prunes the audit log inserts a row here, which permits its deletions, and deletes it again.
CREATE TABLE audit_prunes (
    before_at BIGINT NOT NULL -- ms since the epoch; earlier entries are deleted
);

CREATE OR REPLACE FUNCTION refuse_change_of_audit_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND EXISTS (SELECT 1 FROM audit_prunes) THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'the audit log is appended only';
END
$$;

CREATE POLICY of_tenant ON usage_by_hour
    USING ((SELECT is_system_scope()) OR tenant = ANY ((SELECT tenants_in_scope())::text[]));
ALTER TABLE usage_by_hour ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

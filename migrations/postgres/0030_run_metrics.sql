-- What training requests measured, by request; deleted with the run.
CREATE TABLE run_metrics (
    run_id  TEXT    NOT NULL REFERENCES runs (id), -- the run
    step    BIGINT  NOT NULL,                      -- optimizer steps of the run before this request
    seq_id  BIGINT  NOT NULL,                      -- of the request
    tenant  TEXT    NOT NULL,                      -- owner
    kind    TEXT    NOT NULL,                      -- RequestKind
    at      BIGINT  NOT NULL,                      -- ms since the epoch; when it ended
    metrics TEXT    NOT NULL,                      -- JSON: numbers by name, null for what is not finite
    PRIMARY KEY (run_id, step, seq_id)
);

-- The newest failures of a tenant.
CREATE INDEX requests_failed ON requests (tenant, finished_at) WHERE state = 'failed';

-- As for the other tables of tenants: see 0028.
CREATE POLICY of_tenant ON run_metrics
    USING ((SELECT is_system_scope()) OR tenant = ANY ((SELECT tenants_in_scope())::text[]));
ALTER TABLE run_metrics ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

-- Programs between 28 and this one were never released.
UPDATE schema_compatibility SET oldest_program = 30;

-- Rows of `usage` that are added up in `usage_by_hour` and not deleted, by tenant and hour.
CREATE TABLE usage_rows (
    tenant   TEXT   NOT NULL, -- owner
    hour     BIGINT NOT NULL, -- hours since the epoch
    requests BIGINT NOT NULL, -- number of rows
    PRIMARY KEY (tenant, hour)
);

INSERT INTO usage_rows (tenant, hour, requests)
    SELECT tenant, at / 3600000, count(*) FROM usage WHERE at < (SELECT until_at FROM usage_progress)
    GROUP BY tenant, at / 3600000;

-- Tenants whose older rows of `usage` were deleted because there were too many.
CREATE TABLE usage_kept (
    tenant  TEXT   NOT NULL PRIMARY KEY, -- owner
    from_at BIGINT NOT NULL -- ms since the epoch; earlier rows may be deleted
);

CREATE POLICY of_tenant ON usage_rows
    USING ((SELECT is_system_scope()) OR tenant = ANY ((SELECT tenants_in_scope())::text[]));
ALTER TABLE usage_rows ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

CREATE POLICY of_tenant ON usage_kept
    USING ((SELECT is_system_scope()) OR tenant = ANY ((SELECT tenants_in_scope())::text[]));
ALTER TABLE usage_kept ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

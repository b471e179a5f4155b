-- Rows of `usage` that are added up in `usage_by_hour` and not deleted, by tenant and hour.
CREATE TABLE usage_rows (
    tenant   TEXT    NOT NULL, -- owner
    hour     INTEGER NOT NULL, -- hours since the epoch
    requests INTEGER NOT NULL, -- number of rows
    PRIMARY KEY (tenant, hour)
) STRICT, WITHOUT ROWID;

INSERT INTO usage_rows (tenant, hour, requests)
    SELECT tenant, at / 3600000, count(*) FROM usage WHERE at < (SELECT until_at FROM usage_progress)
    GROUP BY tenant, at / 3600000;

-- Tenants whose older rows of `usage` were deleted because there were too many.
CREATE TABLE usage_kept (
    tenant  TEXT    NOT NULL PRIMARY KEY, -- owner
    from_at INTEGER NOT NULL -- ms since the epoch; earlier rows may be deleted
) STRICT, WITHOUT ROWID;

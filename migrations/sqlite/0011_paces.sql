-- What is left of tenants' paces (tokens_per_minute), for all workers together.
CREATE TABLE paces (
    tenant TEXT   NOT NULL PRIMARY KEY, -- whose
    units  INTEGER NOT NULL,             -- 60,000 are a token; below zero is a debt
    at     INTEGER NOT NULL              -- ms since the epoch; when that was so
) STRICT;

-- Secrets of the service that its processes share.
CREATE TABLE secrets (
    name  TEXT NOT NULL PRIMARY KEY, -- what it is for
    value BLOB NOT NULL              -- random bytes
) STRICT;

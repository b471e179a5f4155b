-- Which programs can work with this schema, for those that are older than it. One row.
CREATE TABLE schema_compatibility (
    oldest_program INTEGER NOT NULL -- the schema version of the oldest one; a later migration that only adds leaves it alone
) STRICT;

INSERT INTO schema_compatibility (oldest_program) VALUES (20);

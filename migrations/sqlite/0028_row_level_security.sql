-- Row-level security is of PostgreSQL; a SQLite file has one process, and stays as it is.
SELECT 1;

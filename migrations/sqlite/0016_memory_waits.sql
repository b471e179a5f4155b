-- Runs that do not fit into the memory of their worker.
ALTER TABLE runs ADD COLUMN memory_wait TEXT; -- JSON: how much it needs and others hold, and the epoch of the lease under which it waits; NULL when it does not

-- Checkpoints that are still to be written count against the storage quota.
ALTER TABLE requests ADD COLUMN stores TEXT; -- kind of the checkpoint that the request writes, as in checkpoints
CREATE INDEX requests_storing ON requests (tenant) WHERE finished_at IS NULL AND stores IS NOT NULL;

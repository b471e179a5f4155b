-- Limit of an organisation: greatest number of unfinished samples.
ALTER TABLE organisations ADD COLUMN max_queued_samples INTEGER CHECK (max_queued_samples >= 1);

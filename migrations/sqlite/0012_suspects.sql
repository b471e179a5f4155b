-- Requests that workers ended with.
ALTER TABLE requests ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0; -- workers that ended while they had it, perhaps among others
ALTER TABLE requests ADD COLUMN alone INTEGER NOT NULL DEFAULT 0; -- how often it was started with nothing beside it

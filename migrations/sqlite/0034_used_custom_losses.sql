-- When a custom loss was last created or used, to within a minute; ms since the epoch.
ALTER TABLE custom_losses ADD COLUMN used_at INTEGER NOT NULL DEFAULT 0;

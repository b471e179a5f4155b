-- Backups that are being taken: objects of the storage that no row names any more stay while one is there.
CREATE TABLE backup_holds (
    id         TEXT    NOT NULL PRIMARY KEY, -- random UUID
    expires_at BIGINT  NOT NULL              -- ms since the epoch, by the database's clock; a backup extends it as long as it copies
);

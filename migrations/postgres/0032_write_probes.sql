-- Probes of whether the store can be written. A transaction inserts its row and deletes it again.
CREATE TABLE write_probes (
    process TEXT NOT NULL PRIMARY KEY -- random UUID of the process that probes
);

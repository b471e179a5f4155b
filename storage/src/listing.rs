//! Listing a storage piece by piece, for garbage collection.

use std::path::PathBuf;

/// A part of the storage whose entries all lie at the same depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// Name of the folder that contains all entries, at the root of the storage.
    pub root: &'static str,
    /// Number of names below the root that an entry has: 1 for files in it.
    pub depth: usize,
}

/// A step of [`Storage::older`](super::Storage::older).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Older {
    /// Files and folders that were last changed before the given moment.
    pub entries: Vec<PathBuf>,
    /// Position at which the next call continues; `None` at the end of the area.
    pub next: Option<String>,
}

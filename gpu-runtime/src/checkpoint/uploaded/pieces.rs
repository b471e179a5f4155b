//! A file that is stored in pieces.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The contents of some files, one after the other.
pub(super) struct Pieces {
    left: std::vec::IntoIter<PathBuf>,
    open: Option<File>,
    length: u64,
}

impl Pieces {
    /// Files of a folder, by their bare names.
    pub(super) fn open(dir: &Path, names: &[String]) -> io::Result<Self> {
        let paths: Vec<PathBuf> = names.iter().map(|name| dir.join(name)).collect();
        let mut length = 0;
        for path in &paths {
            length += path.metadata()?.len();
        }
        Ok(Self { left: paths.into_iter(), open: None, length })
    }

    /// Bytes of all pieces.
    pub(super) fn length(&self) -> u64 {
        self.length
    }
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(file) = &mut self.open {
                match file.read(into)? {
                    0 if !into.is_empty() => self.open = None,
                    count => return Ok(count),
                }
            }
            match self.left.next() {
                Some(path) => self.open = Some(File::open(path)?),
                None => return Ok(0),
            }
        }
    }
}

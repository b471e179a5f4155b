//! Errors of a header before the file's name is known.

use std::path::Path;

use crate::config::LoadError;
use crate::load::errors::{io, malformed};

/// Errors of a header.
pub(super) enum Error {
    Io(std::io::Error),
    Malformed(String),
}

impl Error {
    /// Says in which part of the header it is.
    pub(super) fn within(self, part: String) -> Self {
        match self {
            Self::Malformed(reason) => Self::Malformed(format!("{part}: {reason}")),
            io => io,
        }
    }

    pub(super) fn of_file(self, path: &Path) -> LoadError {
        match self {
            Self::Io(error) => io(path, error),
            Self::Malformed(reason) => malformed(path, format!("GGUF header: {reason}")),
        }
    }
}

impl From<String> for Error {
    fn from(reason: String) -> Self {
        Self::Malformed(reason)
    }
}

impl From<&str> for Error {
    fn from(reason: &str) -> Self {
        Self::Malformed(reason.to_owned())
    }
}

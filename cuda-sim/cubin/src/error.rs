//! Errors of files that are not cubins.

use thiserror::Error;

/// Reasons why a file is not a valid cubin.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum CubinError {
    /// The file is not a 64-bit ELF file for a GPU.
    #[error("not an ELF file for a GPU: {0}")]
    Header(&'static str),
    /// A part lies outside the file, or has no end.
    #[error("{0} is beyond the file")]
    Truncated(&'static str),
    /// The version of the file's ABI is unknown.
    #[error("unknown ABI version {0}: expected 7 or 8")]
    Abi(u8),
    /// A required part of a kernel is missing.
    #[error("kernel {kernel} has no {what}")]
    Missing {
        /// Name of the kernel.
        kernel: String,
        /// Name of the missing part.
        what: &'static str,
    },
}

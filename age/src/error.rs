//! The reasons for which a file is not encrypted.

use std::io;

use ring::error::Unspecified;

/// The reason why a file could not be encrypted.
#[derive(Debug, thiserror::Error)]
pub enum AgeError {
    /// The plaintext could not be read or the file could not be written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The list of recipients is empty.
    #[error("expected at least one recipient")]
    NoRecipients,
    /// A cryptographic operation failed; the library reports no reason.
    #[error("a cryptographic operation failed")]
    Cryptography,
}

impl From<Unspecified> for AgeError {
    fn from(_: Unspecified) -> Self {
        Self::Cryptography
    }
}

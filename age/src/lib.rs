//! Encryption of exports in the age v1 format (<https://age-encryption.org/v1>), to X25519 recipients.
//!
//! This crate only writes files. `tests/sdk/test_age.py` decrypts them with another implementation.

mod error;
mod folder;
mod header;
mod recipient;
mod stream;

use std::io::{Read, Write};

use ring::rand::{SecureRandom, SystemRandom};

pub use error::AgeError;
pub use folder::encrypt_folder;
pub use recipient::{MAX_RECIPIENTS, Recipient, recipients};

/// Encrypts all of `plain` to recipients, and returns the bytes that were written. Holds two chunks of 64 KiB at a
/// time.
///
/// # Errors
/// Fails if reading or writing fails, or `recipients` is empty.
pub fn encrypt(plain: impl Read, mut to: impl Write, recipients: &[Recipient]) -> Result<u64, AgeError> {
    if recipients.is_empty() {
        return Err(AgeError::NoRecipients);
    }
    let random = SystemRandom::new();
    let mut file_key = [0; header::FILE_KEY];
    random.fill(&mut file_key)?;
    let mut nonce = [0; 16];
    random.fill(&mut nonce)?;
    let header = header::header(&file_key, recipients, &random)?;
    let key = header::sealing_key(&header::derive(&file_key, &nonce, b"payload")?)?;
    to.write_all(header.as_bytes())?;
    to.write_all(&nonce)?;
    Ok(header.len() as u64 + nonce.len() as u64 + stream::seal(plain, to, &key)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::io;

    use super::*;

    /// A recipient of the format's published test vectors.
    pub(super) const RECIPIENT: &str = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";

    fn encrypted(plain: &[u8], recipients: &[Recipient]) -> Vec<u8> {
        let mut file = Vec::new();
        let written = encrypt(plain, &mut file, recipients).unwrap();
        assert_eq!(written, file.len() as u64);
        file
    }

    /// Bytes behind the header, whose last line begins with `---`.
    fn payload_len(file: &[u8]) -> usize {
        let mac = file.windows(5).position(|bytes| bytes == b"\n--- ").unwrap() + 1;
        let line = file[mac..].iter().position(|byte| *byte == b'\n').unwrap();
        file.len() - mac - line - 1
    }

    /// A nonce, and a tag for each chunk of 64 KiB, also for the one that an empty file has.
    #[test]
    fn payloads_have_the_length_of_their_chunks() {
        let chunk = 64 * 1024;
        for (length, chunks) in [(0, 1), (1, 1), (chunk - 1, 1), (chunk, 1), (chunk + 1, 2), (3 * chunk, 3)] {
            let file = encrypted(&vec![7; length], &[RECIPIENT.parse().unwrap()]);
            assert_eq!(payload_len(&file), 16 + length + 16 * chunks, "{length}");
        }
    }

    #[test]
    fn nothing_repeats() {
        let recipients = [RECIPIENT.parse().unwrap()];
        assert_ne!(encrypted(b"text", &recipients), encrypted(b"text", &recipients));
    }

    #[test]
    fn without_recipients_nothing_is_encrypted() {
        let mut file = Vec::new();
        assert!(matches!(encrypt(&b"text"[..], &mut file, &[]), Err(AgeError::NoRecipients)));
        assert!(file.is_empty());
    }

    /// An input that fails after its first bytes.
    struct Failing(bool);

    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if std::mem::replace(&mut self.0, true) {
                return Err(io::Error::other("broken"));
            }
            buffer.fill(7);
            Ok(buffer.len())
        }
    }

    #[test]
    fn an_input_that_fails_leaves_a_file_without_its_last_chunk() {
        let mut file = Vec::new();
        let failed = encrypt(Failing(false), &mut file, &[RECIPIENT.parse().unwrap()]);
        assert!(matches!(failed, Err(AgeError::Io(_))), "{failed:?}");
        assert_eq!(payload_len(&file), 16);
    }
}

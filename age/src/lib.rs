//! Encryption of exports in the age v1 format (<https://age-encryption.org/v1>), to X25519 recipients.
//!
//! This crate only writes files. Its tests decrypt them with the crate `age`.

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

    /// An identity of the format's published test vectors, and its recipient.
    pub(super) const IDENTITY: &str = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";
    pub(super) const RECIPIENT: &str = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";

    fn encrypted(plain: &[u8], recipients: &[Recipient]) -> Vec<u8> {
        let mut file = Vec::new();
        let written = encrypt(plain, &mut file, recipients).unwrap();
        assert_eq!(written, file.len() as u64);
        file
    }

    pub(super) fn decrypted(file: &[u8], identity: &age::x25519::Identity) -> Option<Vec<u8>> {
        age::decrypt(identity, file).ok()
    }

    /// Around the size of a chunk, 64 KiB.
    #[test]
    fn every_recipient_decrypts_files_of_all_lengths_and_nobody_else() {
        let identity: age::x25519::Identity = IDENTITY.parse().unwrap();
        let (other, stranger) = (age::x25519::Identity::generate(), age::x25519::Identity::generate());
        let recipients = [RECIPIENT.parse().unwrap(), other.to_public().to_string().parse().unwrap()];
        let chunk = 64 * 1024;
        for length in [0, 1, chunk - 1, chunk, chunk + 1, 3 * chunk, 3 * chunk + 5] {
            let plain: Vec<u8> = (0_u32..).flat_map(u32::to_le_bytes).take(length).collect();
            let file = encrypted(&plain, &recipients);
            for reader in [&identity, &other] {
                assert!(decrypted(&file, reader).is_some_and(|read| read == plain), "{length}");
            }
            assert_eq!(decrypted(&file, &stranger), None, "{length}");
            assert_eq!(decrypted(&file[..file.len() - 1], &identity), None, "{length}");
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
    fn an_input_that_fails_leaves_a_file_that_nobody_decrypts() {
        let mut file = Vec::new();
        let failed = encrypt(Failing(false), &mut file, &[RECIPIENT.parse().unwrap()]);
        assert!(matches!(failed, Err(AgeError::Io(_))), "{failed:?}");
        assert_eq!(decrypted(&file, &IDENTITY.parse().unwrap()), None);
    }
}

//! Encryption of exports in the age v1 format (<https://age-encryption.org/v1>), to X25519 recipients.
//!
//! A file is a header, which holds the file key once per recipient and is authenticated with it, and the payload:
//! ChaCha20-Poly1305 in chunks of 64 KiB under a key that is derived from the file key. The primitives are those of `ring`,
//! which also serves TLS; the crate `age` (0.12, a beta) would bring 75 packages, for translated messages and post-quantum
//! keys among others.

mod bech32;
mod folder;
mod recipient;

use std::io::{self, Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::error::Unspecified;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{hkdf, hmac};

pub use folder::encrypt_folder;
pub use recipient::{Recipient, recipients};

/// Bytes of plaintext in all chunks but the last.
const CHUNK: usize = 64 * 1024;
const FILE_KEY: usize = 16;
const PAYLOAD_NONCE: usize = 16;

/// Why something could not be encrypted.
#[derive(Debug, thiserror::Error)]
pub enum AgeError {
    /// Reading the plaintext or writing the file failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A primitive refused its input: the public key of a recipient is not one.
    #[error("the cryptographic library refused an input")]
    Refused,
}

impl From<Unspecified> for AgeError {
    fn from(_: Unspecified) -> Self {
        Self::Refused
    }
}

/// Encrypts all of `plain` to recipients, of whom there is at least one. Returns the bytes that were written.
///
/// # Errors
/// When reading, writing or a primitive fails.
pub fn encrypt(mut plain: impl Read, mut to: impl Write, recipients: &[Recipient]) -> Result<u64, AgeError> {
    let random = SystemRandom::new();
    let (mut file_key, mut nonce) = ([0; FILE_KEY], [0; PAYLOAD_NONCE]);
    random.fill(&mut file_key)?;
    random.fill(&mut nonce)?;
    let header = header(&file_key, recipients, &random)?;
    to.write_all(&header)?;
    to.write_all(&nonce)?;
    let mut written = (header.len() + nonce.len()) as u64;
    let key = aead_key(derive(&nonce, &file_key, b"payload")?)?;
    let (mut chunk, mut next) = (read_chunk(&mut plain)?, Vec::new());
    for counter in 0_u64.. {
        // A chunk that is full is the last one only when nothing follows it.
        if chunk.len() == CHUNK {
            next = read_chunk(&mut plain)?;
        }
        let is_last = next.is_empty();
        key.seal_in_place_append_tag(chunk_nonce(counter, is_last), Aad::empty(), &mut chunk)?;
        to.write_all(&chunk)?;
        written += chunk.len() as u64;
        if is_last {
            break;
        }
        chunk = std::mem::take(&mut next);
    }
    to.flush()?;
    Ok(written)
}

/// Up to [`CHUNK`] bytes: fewer at the end alone.
fn read_chunk(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut chunk = Vec::with_capacity(CHUNK + CHACHA20_POLY1305.tag_len());
    from.by_ref().take(CHUNK as u64).read_to_end(&mut chunk)?;
    Ok(chunk)
}

/// The stanzas of the recipients, and the MAC under the file key.
fn header(file_key: &[u8; FILE_KEY], recipients: &[Recipient], random: &SystemRandom) -> Result<Vec<u8>, AgeError> {
    let mut header = "age-encryption.org/v1\n".to_owned();
    for recipient in recipients {
        header.push_str(&recipient.stanza(file_key, random)?);
    }
    header.push_str("---");
    let mac_key = hmac::Key::new(hmac::HMAC_SHA256, &derive(&[], file_key, b"header")?);
    let mac = hmac::sign(&mac_key, header.as_bytes());
    header.push(' ');
    header.push_str(&STANDARD_NO_PAD.encode(mac));
    header.push('\n');
    Ok(header.into_bytes())
}

/// HKDF-SHA-256.
fn derive(salt: &[u8], secret: &[u8], info: &[u8]) -> Result<[u8; 32], Unspecified> {
    let mut key = [0; 32];
    let secret = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(secret);
    secret.expand(&[info], hkdf::HKDF_SHA256)?.fill(&mut key)?;
    Ok(key)
}

fn aead_key(key: [u8; 32]) -> Result<LessSafeKey, Unspecified> {
    UnboundKey::new(&CHACHA20_POLY1305, &key).map(LessSafeKey::new)
}

/// Eleven bytes that count the chunks, and one that marks the last.
fn chunk_nonce(counter: u64, is_last: bool) -> Nonce {
    let mut nonce = [0; 12];
    nonce[3..11].copy_from_slice(&counter.to_be_bytes());
    nonce[11] = u8::from(is_last);
    Nonce::assume_unique_for_key(nonce)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    /// The key of the identity AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX of the
    /// format's published test vectors.
    pub(super) const RECIPIENT: &str = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";

    fn encrypted(plain: &[u8], recipients: &[Recipient]) -> Vec<u8> {
        let mut file = Vec::new();
        let written = encrypt(plain, &mut file, recipients).unwrap();
        assert_eq!(written, file.len() as u64);
        file
    }

    #[test]
    fn the_header_is_as_the_format_says() {
        let recipient: Recipient = RECIPIENT.parse().unwrap();
        let file = encrypted(b"text", &[recipient.clone(), recipient]);
        let end = file.windows(4).position(|bytes| bytes == b"--- ").unwrap() + 4 + 43 + 1;
        let text = std::str::from_utf8(&file[..end]).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0]), (6, "age-encryption.org/v1"));
        for stanza in [&lines[1..3], &lines[3..5]] {
            let share = stanza[0].strip_prefix("-> X25519 ").unwrap();
            assert_eq!(STANDARD_NO_PAD.decode(share).unwrap().len(), 32);
            assert_eq!(STANDARD_NO_PAD.decode(stanza[1]).unwrap().len(), FILE_KEY + 16);
        }
        assert_ne!(lines[1], lines[3], "each recipient has a share of its own");
        assert_eq!(file.len() - end, PAYLOAD_NONCE + 4 + 16);
    }

    /// A file that is a multiple of a chunk has no empty last chunk; an empty file has one.
    #[test]
    fn every_chunk_has_a_tag_and_only_an_empty_file_an_empty_chunk() {
        let recipients = [RECIPIENT.parse().unwrap()];
        let header = encrypted(&[], &recipients).len() - PAYLOAD_NONCE - 16;
        for (length, chunks) in [(1, 1), (CHUNK, 1), (CHUNK + 1, 2), (3 * CHUNK, 3), (3 * CHUNK + 5, 4)] {
            let file = encrypted(&vec![7; length], &recipients);
            assert_eq!(file.len() - header, PAYLOAD_NONCE + length + 16 * chunks, "{length}");
            assert!(!file.windows(32).any(|bytes| bytes == [7; 32]));
        }
    }

    #[test]
    fn nothing_repeats() {
        let recipients = [RECIPIENT.parse().unwrap()];
        assert_ne!(encrypted(b"text", &recipients), encrypted(b"text", &recipients));
    }

    /// Test case 1 of RFC 5869.
    #[test]
    fn keys_are_derived_with_hkdf() {
        let salt: Vec<u8> = (0..=12).collect();
        let info: Vec<u8> = (0xf0..=0xf9).collect();
        let key = derive(&salt, &[0x0b; 22], &info).unwrap();
        assert_eq!(key[..8], [0x3c, 0xb2, 0x5f, 0x25, 0xfa, 0xac, 0xd5, 0x7a]);
    }
}

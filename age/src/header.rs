//! The header of an age file: the file key, wrapped for each recipient.
//!
//! Formulas are those of the specification (<https://c2sp.org/age>), sections "X25519 recipient" and "Header MAC".

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::agreement::{EphemeralPrivateKey, X25519, agree_ephemeral};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::hmac;
use ring::rand::SecureRandom;

use crate::{AgeError, Recipient};

/// Bytes of a file key.
pub(crate) const FILE_KEY: usize = 16;
/// Bytes of a derived key.
const DERIVED: usize = 32;

/// Returns the header of a file with this key, up to and including its last line feed.
pub(crate) fn header(
    file_key: &[u8; FILE_KEY],
    recipients: &[Recipient],
    random: &dyn SecureRandom,
) -> Result<String, AgeError> {
    let mut header = "age-encryption.org/v1\n".to_owned();
    for recipient in recipients {
        header.push_str(&stanza(file_key, recipient, random)?);
    }
    header.push_str("---");
    let key = hmac::Key::new(hmac::HMAC_SHA256, &derive(file_key, &[], b"header")?);
    let mac = hmac::sign(&key, header.as_bytes());
    header.push_str(&format!(" {}\n", STANDARD_NO_PAD.encode(mac)));
    Ok(header)
}

/// Wraps the file key for a recipient, whose holder unwraps it with an agreement on the ephemeral public key.
fn stanza(file_key: &[u8; FILE_KEY], recipient: &Recipient, random: &dyn SecureRandom) -> Result<String, AgeError> {
    let ephemeral = EphemeralPrivateKey::generate(&X25519, random)?;
    let share = ephemeral.compute_public_key()?;
    let salt = [share.as_ref(), recipient.key()].concat();
    let wrapping = agree_ephemeral(ephemeral, &recipient.peer(), |secret| {
        derive(secret, &salt, b"age-encryption.org/v1/X25519")
    })??;
    let mut wrapped = file_key.to_vec();
    // Each wrapping key seals one file key, so that its nonce may be zero.
    sealing_key(&wrapping)?.seal_in_place_append_tag(
        Nonce::assume_unique_for_key([0; 12]),
        Aad::empty(),
        &mut wrapped,
    )?;
    Ok(format!("-> X25519 {}\n{}\n", STANDARD_NO_PAD.encode(share), STANDARD_NO_PAD.encode(wrapped)))
}

/// Derives a key of 32 bytes with HKDF-SHA-256.
pub(crate) fn derive(secret: &[u8], salt: &[u8], info: &[u8]) -> Result<[u8; DERIVED], AgeError> {
    let mut key = [0; DERIVED];
    Salt::new(HKDF_SHA256, salt).extract(secret).expand(&[info], Length)?.fill(&mut key)?;
    Ok(key)
}

pub(crate) fn sealing_key(key: &[u8; DERIVED]) -> Result<LessSafeKey, AgeError> {
    Ok(LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key)?))
}

/// The length of a derived key, as HKDF takes it.
struct Length;

impl KeyType for Length {
    fn len(&self) -> usize {
        DERIVED
    }
}

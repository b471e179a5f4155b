//! Recipients: X25519 public keys.

use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::aead::{Aad, Nonce};
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::rand::SystemRandom;
use trainyard_protocol::OpError;

use super::{AgeError, FILE_KEY, aead_key, bech32, derive};

/// Most recipients of an export.
const MAX_RECIPIENTS: usize = 10;

/// Who can decrypt a file: the holder of an X25519 identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipient([u8; 32]);

impl FromStr for Recipient {
    type Err = String;

    /// Reads `age1…`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("ssh-") {
            return Err("SSH keys are not supported; give a native recipient, age1…".to_owned());
        }
        bech32::decode(text, "age").map(Self).ok_or_else(|| format!("{text:?} is not an age recipient, age1…"))
    }
}

impl Recipient {
    /// The file key for this recipient, as a part of a header: wrapped under a key that it shares with an ephemeral one.
    pub(super) fn stanza(&self, file_key: &[u8; FILE_KEY], random: &SystemRandom) -> Result<String, AgeError> {
        let ephemeral = EphemeralPrivateKey::generate(&X25519, random)?;
        let share = ephemeral.compute_public_key()?;
        let salt = [share.as_ref(), &self.0].concat();
        let peer = UnparsedPublicKey::new(&X25519, &self.0);
        // A secret of zeros, as keys of low order give it, is refused.
        let key = agree_ephemeral(ephemeral, &peer, |secret| derive(&salt, secret, b"age-encryption.org/v1/X25519"))??;
        let mut wrapped = file_key.to_vec();
        let nonce = Nonce::assume_unique_for_key([0; 12]);
        aead_key(key)?.seal_in_place_append_tag(nonce, Aad::empty(), &mut wrapped)?;
        let (share, body) = (STANDARD_NO_PAD.encode(share), STANDARD_NO_PAD.encode(wrapped));
        Ok(format!("-> X25519 {share}\n{body}\n"))
    }
}

/// Reads the recipients of an export.
///
/// # Errors
/// The user's, by place: too many, a text that is none, a key to which nothing can be encrypted.
pub fn recipients(texts: &[String]) -> Result<Vec<Recipient>, OpError> {
    let field = "age_encryption_recipients";
    if texts.len() > MAX_RECIPIENTS {
        let found = texts.len();
        return Err(OpError::user(format!("{field}: {found} recipients, at most {MAX_RECIPIENTS} are allowed")));
    }
    let read = |(at, text): (usize, &String)| {
        let refused = |reason: String| OpError::user(format!("{field}[{at}]: {reason}"));
        let recipient: Recipient = text.parse().map_err(refused)?;
        let tried = recipient.stanza(&[0; FILE_KEY], &SystemRandom::new());
        tried.map_err(|_| refused(format!("nothing can be encrypted to the key of {text:?}")))?;
        Ok(recipient)
    };
    texts.iter().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::super::tests::RECIPIENT;
    use super::*;

    fn refusal(texts: &[&str]) -> String {
        recipients(&texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>()).unwrap_err().message
    }

    #[test]
    fn recipients_are_read_or_refused_by_place() {
        let ten = vec![RECIPIENT.to_owned(); 10];
        assert_eq!(recipients(&ten).unwrap().len(), 10);
        assert_eq!(recipients(&[]).unwrap(), []);
        assert!(refusal(&[RECIPIENT; 11]).starts_with("age_encryption_recipients: 11 recipients, at most 10"));
        assert!(
            refusal(&[RECIPIENT, "ssh-ed25519 AAAA"]).starts_with("age_encryption_recipients[1]: SSH keys are not")
        );
        for text in ["", "age1", "age1x", "AGE-SECRET-KEY-1", &RECIPIENT[1..], &format!("{RECIPIENT} ")] {
            assert!(refusal(&[text]).starts_with("age_encryption_recipients[0]: "), "{text}");
        }
        // The key of zeros, which has the order 1.
        let refused = Recipient([0; 32]).stanza(&[0; FILE_KEY], &SystemRandom::new());
        assert!(matches!(refused, Err(AgeError::Refused)), "{refused:?}");
    }
}

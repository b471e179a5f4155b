//! Recipients: X25519 public keys.

use std::str::FromStr;

use age::x25519;
use bech32::Bech32;
use bech32::primitives::decode::CheckedHrpstring;
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::rand::SystemRandom;
use trainyard_protocol::OpError;

/// Most recipients of an export.
const MAX_RECIPIENTS: usize = 10;

/// Bytes of the longest text that an error repeats.
const MAX_SHOWN: usize = 256;

/// Who can decrypt a file: the holder of an X25519 identity. Something can be encrypted to the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipient(x25519::Recipient);

impl FromStr for Recipient {
    type Err = String;

    /// Reads `age1…`, in lower case.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("ssh-") {
            return Err("SSH keys are not supported; give a native recipient, age1…".to_owned());
        }
        // Only what the key is written as: not in upper case, nor with padding that is not zero.
        let key: Option<x25519::Recipient> =
            text.parse().ok().filter(|key: &x25519::Recipient| key.to_string() == text);
        let key = key.ok_or_else(|| format!("{} is not an age recipient, age1…", shown(text)))?;
        if !agrees(text) {
            return Err(format!("nothing can be encrypted to the key of {}", shown(text)));
        }
        Ok(Self(key))
    }
}

/// A text that is refused, for an error that is stored and logged. It may be a secret, put here by mistake: one that does not
/// start as recipients do is only described.
fn shown(text: &str) -> String {
    let bytes = text.len();
    if text.to_ascii_uppercase().contains("AGE-SECRET-KEY-") {
        return "a secret key of age (AGE-SECRET-KEY-…; give its public recipient, and make another key if this one was \
                sent to anybody)"
            .to_owned();
    }
    match text.get(.."age1".len()) {
        Some("age1") if bytes <= MAX_SHOWN => format!("{text:?}"),
        _ => format!("a text of {bytes} bytes"),
    }
}

/// Whether X25519 gives a secret with the public key of this text. With a key of low order it is always zero, at which
/// the crate `age` panics when it encrypts.
fn agrees(text: &str) -> bool {
    let Ok(key) = CheckedHrpstring::new::<Bech32>(text) else { return false };
    let peer = UnparsedPublicKey::new(&X25519, key.byte_iter().collect::<Vec<u8>>());
    // Ring refuses a secret of zeros.
    EphemeralPrivateKey::generate(&X25519, &SystemRandom::new())
        .and_then(|ephemeral| agree_ephemeral(ephemeral, &peer, |_| ()))
        .is_ok()
}

impl Recipient {
    /// What the crate encrypts to.
    pub(super) fn key(&self) -> &dyn age::Recipient {
        &self.0
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
        text.parse().map_err(|reason: String| OpError::user(format!("{field}[{at}]: {reason}")))
    };
    texts.iter().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use bech32::Hrp;

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
    }

    #[test]
    fn a_secret_is_never_repeated() {
        let secret = "AGE-SECRET-KEY-1QYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQS3QGPQ2";
        let others =
            [secret.to_lowercase(), format!(" {secret}"), format!("age1{secret}"), "hunter2hunter2".to_owned()];
        for text in others.iter().map(String::as_str).chain([secret]) {
            let refusal = refusal(&[text]);
            let quoted = text.trim().trim_start_matches("age1");
            assert!(!refusal.to_lowercase().contains(&quoted.to_lowercase()[quoted.len() - 10..]), "{refusal}");
        }
        assert!(refusal(&[secret]).contains("give its public recipient"));
    }

    #[test]
    fn a_changed_text_is_refused() {
        assert!(RECIPIENT.parse::<Recipient>().is_ok());
        assert!(RECIPIENT.to_uppercase().parse::<Recipient>().is_err());
        for at in 0..RECIPIENT.len() {
            let mut changed = RECIPIENT.as_bytes().to_vec();
            changed[at] = if changed[at] == b'q' { b'p' } else { b'q' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(changed.parse::<Recipient>().is_err(), "{changed}");
            assert!(RECIPIENT[..at].parse::<Recipient>().is_err());
        }
    }

    /// A well-formed text under another prefix, with another length, or with the checksum of Bech32m.
    #[test]
    fn keys_of_another_kind_are_refused() {
        let text = |prefix: &str, key: &[u8]| bech32::encode::<Bech32>(Hrp::parse(prefix).unwrap(), key).unwrap();
        assert!(text("age", &[9; 32]).parse::<Recipient>().is_ok());
        for other in [text("agf", &[9; 32]), text("age1tag", &[9; 33]), text("age", &[9; 31]), text("age", &[9; 33])] {
            assert!(other.parse::<Recipient>().unwrap_err().ends_with("is not an age recipient, age1…"), "{other}");
        }
        let other = bech32::encode::<bech32::Bech32m>(Hrp::parse("age").unwrap(), &[9; 32]).unwrap();
        assert!(other.parse::<Recipient>().is_err(), "{other}");
    }

    /// The encodings of points whose order divides 8 (RFC 7748, section 7), with and without the bit that X25519 ignores.
    #[test]
    fn keys_of_low_order_are_refused() {
        let number = |first: u8, middle: u8, last: u8| {
            let mut key = [middle; 32];
            (key[0], key[31]) = (first, last);
            key
        };
        let order_8 = [
            "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
            "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        ];
        let hex = |text: &str| -> [u8; 32] {
            std::array::from_fn(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
        };
        let mut keys: Vec<[u8; 32]> = order_8.map(hex).to_vec();
        // 0 and 1; p - 1, p and p + 1, where p is 2^255 - 19.
        keys.extend([number(0, 0, 0), number(1, 0, 0)]);
        keys.extend([0xec, 0xed, 0xee].map(|first| number(first, 0xff, 0x7f)));
        for mut key in keys {
            for _ in 0..2 {
                let text = bech32::encode::<Bech32>(Hrp::parse("age").unwrap(), &key).unwrap();
                assert!(text.parse::<Recipient>().unwrap_err().starts_with("nothing can be encrypted"), "{key:x?}");
                key[31] ^= 0x80;
            }
        }
    }
}

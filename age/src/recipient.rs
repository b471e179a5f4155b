//! Recipients: X25519 public keys.

use std::str::FromStr;

use bech32::primitives::decode::CheckedHrpstring;
use bech32::{Bech32, Hrp};
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::rand::SystemRandom;
use trainyard_protocol::OpError;

/// Maximum number of recipients of an export.
pub const MAX_RECIPIENTS: usize = 10;

/// Bytes of the longest text that an error repeats.
const MAX_SHOWN: usize = 256;

/// The prefix of a recipient's text.
const PREFIX: Hrp = Hrp::parse_unchecked("age");

/// The public key of a recipient, who can decrypt a file with the corresponding identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipient([u8; 32]);

impl FromStr for Recipient {
    type Err = String;

    /// Reads `age1…`, in lower case. Errors do not repeat what may be a secret key.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("ssh-") {
            return Err("SSH keys are not supported; expected a native recipient, age1…".to_owned());
        }
        let recipient = read(text)
            .ok_or_else(|| format!("expected an age recipient, age1… in lower case; found {}", shown(text)))?;
        if !recipient.agrees() {
            return Err(format!("nothing can be encrypted to the key of {}", shown(text)));
        }
        Ok(recipient)
    }
}

/// Reads the one way of writing a key: in lower case, with padding of zeros.
fn read(text: &str) -> Option<Recipient> {
    let decoded = CheckedHrpstring::new::<Bech32>(text).ok()?;
    let key: [u8; 32] = decoded.byte_iter().collect::<Vec<u8>>().try_into().ok()?;
    let written = bech32::encode::<Bech32>(PREFIX, &key).ok()?;
    (written == text).then_some(Recipient(key))
}

/// Describes a refused text for an error, which is stored and logged. The text may be a secret that was put here by
/// mistake: unless it starts as recipients do, it is not repeated.
fn shown(text: &str) -> String {
    if text.to_ascii_uppercase().contains("AGE-SECRET-KEY-") {
        return "a secret key (AGE-SECRET-KEY-…): give its public recipient, and make a new key if this one was sent to \
                anybody"
            .to_owned();
    }
    match text.get(.."age1".len()) {
        Some("age1") if text.len() <= MAX_SHOWN => format!("{text:?}"),
        _ => format!("a text of {} bytes", text.len()),
    }
}

impl Recipient {
    pub(crate) fn key(&self) -> &[u8] {
        &self.0
    }

    /// Returns the key as an agreement takes it.
    pub(crate) fn peer(&self) -> UnparsedPublicKey<[u8; 32]> {
        UnparsedPublicKey::new(&X25519, self.0)
    }

    /// Whether X25519 gives a secret with this key. With a key of low order the secret is always zero, which `ring` refuses.
    fn agrees(&self) -> bool {
        EphemeralPrivateKey::generate(&X25519, &SystemRandom::new())
            .and_then(|ephemeral| agree_ephemeral(ephemeral, &self.peer(), |_| ()))
            .is_ok()
    }
}

/// Reads the recipients of an export.
///
/// # Errors
/// Fails if there are too many recipients, or if a text is not a recipient; the error names its index.
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
            assert!(other.parse::<Recipient>().unwrap_err().starts_with("expected an age recipient"), "{other}");
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

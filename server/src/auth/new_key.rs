//! Creation of API keys.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use trainyard_scheduler::{NewApiKey, Role, Scope, Timestamp};
use trainyard_wire::auth::{AGENT_KEY_PREFIX, KEY_PREFIX};

use super::Keys;
use crate::random::secret_bytes;

/// The number of characters behind the prefix that are stored, to tell keys apart.
const HINT: usize = 4;
/// Bits of an id: JSON readers represent larger integers inexactly.
const ID_BITS: u32 = 53;

/// The properties of a new key.
#[derive(Clone, Debug)]
pub struct KeyRequest {
    /// Email address of the key's user; `None` for a key of a program.
    pub user: Option<String>,
    /// Name for display; any text.
    pub name: String,
    /// Note for display; any text.
    pub note: String,
    /// Highest role that the key grants; `None` for the role of its user, or of a member without one.
    pub role: Option<Role>,
    /// The scopes of the key; `None` for all scopes of its role.
    pub scopes: Option<Vec<Scope>>,
    /// The time when the key expires, if it does.
    pub expires_at: Option<Timestamp>,
}

impl KeyRequest {
    /// Makes a random key with 256 bits of entropy; returns the key and the record for the store.
    ///
    /// # Errors
    /// Fails if the system has no random numbers.
    pub fn make(self) -> io::Result<(String, NewApiKey)> {
        let key = format!("{KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(secret_bytes::<32>()?));
        let id = i64::from_le_bytes(secret_bytes()?) & ((1 << ID_BITS) - 1);
        let hint = key.chars().take(KEY_PREFIX.len() + HINT).collect();
        let Self { user, name, note, role, scopes, expires_at } = self;
        let digest = Keys::digest(&key);
        Ok((key, NewApiKey { id, digest, user, name, note, hint, role, scopes, expires_at }))
    }
}

/// Makes a random key of an agent session with 256 bits of entropy; returns the key and its digest.
///
/// # Errors
/// Fails if the system has no random numbers.
pub(crate) fn agent_key() -> io::Result<(String, [u8; 32])> {
    let key = format!("{AGENT_KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(secret_bytes::<32>()?));
    let digest = Keys::digest(&key);
    Ok((key, digest))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn keys_differ_and_only_their_digest_is_stored() {
        let request =
            KeyRequest { user: None, name: "a".into(), note: "".into(), role: None, scopes: None, expires_at: None };
        let (key, stored) = request.clone().make().unwrap();
        let (other, _) = request.make().unwrap();
        assert!(key != other && key.len() == 47 && key.starts_with(&stored.hint) && stored.hint.len() == 8);
        assert_eq!(stored.digest, Keys::digest(&key));
        assert!((0..1 << 53).contains(&stored.id));
    }
}

//! Download URLs with their own authorisation: they carry tenant, expiry and an HMAC-SHA256 over both and the file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use trainyard_protocol::TenantId;

/// The permission that a URL carries: one file of one object of one tenant, until it expires.
#[derive(Clone, Copy, Debug)]
pub struct Grant<'a> {
    /// The tenant that owns the object.
    pub tenant: &'a TenantId,
    /// The object: a checkpoint by its path, or `<what>:<id>`.
    pub object: &'a str,
    /// The file's bare name.
    pub file: &'a str,
    /// The time of expiry, in seconds since the epoch.
    pub expires: i64,
}

/// Signs and checks grants with a key that belongs to the data directory.
pub struct Signer {
    key: [u8; 32],
}

impl Signer {
    /// Reads the key file, or creates it with a random key and mode 0600.
    ///
    /// # Errors
    /// Fails if the file can be neither read nor written, or does not hold 32 bytes.
    pub fn open(file: &Path) -> io::Result<Self> {
        match fs::read(file) {
            Ok(bytes) => Self::from_bytes(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::create(file),
            Err(error) => Err(error),
        }
    }

    /// Makes a signer with a key of 32 bytes.
    ///
    /// # Errors
    /// Fails if the key has another length.
    pub fn from_bytes(bytes: &[u8]) -> io::Result<Self> {
        let key = bytes.try_into().map_err(|_| io::Error::other("the signing key must be 32 bytes long"))?;
        Ok(Self { key })
    }

    /// Returns the key, to share it with other processes of the service.
    pub fn key(&self) -> [u8; 32] {
        self.key
    }

    fn create(file: &Path) -> io::Result<Self> {
        let mut key = [0; 32];
        File::open("/dev/urandom")?.read_exact(&mut key)?;
        // A crash must not leave a short key behind: write beside it, sync, rename.
        let temporary = file.with_extension("new");
        let mut out = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        out.write_all(&key)?;
        out.sync_all()?;
        fs::rename(&temporary, file)?;
        Ok(Self { key })
    }

    /// Returns the URL-safe signature of a grant.
    pub fn sign(&self, grant: Grant<'_>) -> String {
        URL_SAFE_NO_PAD.encode(self.mac(grant).finalize().into_bytes())
    }

    /// Checks in constant time whether the signature belongs to the grant. The caller must check the expiry.
    pub fn verify(&self, grant: Grant<'_>, signature: &str) -> bool {
        URL_SAFE_NO_PAD.decode(signature).is_ok_and(|bytes| self.mac(grant).verify_slice(&bytes).is_ok())
    }

    fn mac(&self, grant: Grant<'_>) -> Hmac<Sha256> {
        let mut mac = <Hmac<Sha256> as KeyInit>::new(&self.block_key());
        // Lengths first, so that no two grants have the same text.
        for part in [grant.tenant.as_str(), grant.object, grant.file] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac.update(&grant.expires.to_be_bytes());
        mac
    }

    /// HMAC pads a short key with zeros to the hash's block (RFC 2104).
    fn block_key(&self) -> hmac::digest::Key<Hmac<Sha256>> {
        let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
        block.iter_mut().zip(self.key).for_each(|(slot, byte)| *slot = byte);
        block
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_key_is_private_and_survives() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("url-signing.key");
        let first = Signer::open(&file).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Signer::open(&file).unwrap().key, first.key);
        fs::write(&file, b"short").unwrap();
        assert!(Signer::open(&file).is_err());
    }

    #[test]
    fn a_signature_covers_every_field() {
        let signer = Signer { key: [7; 32] };
        let (tenant, other) = (TenantId::new("a"), TenantId::new("b"));
        let (path, path2) = ("tinker://s:train:0/external_weights/x", "tinker://s:train:0/external_weights/y");
        let grant = Grant { tenant: &tenant, object: path, file: "f", expires: 10 };
        let signature = signer.sign(grant);
        assert!(signer.verify(grant, &signature));
        for changed in [
            Grant { tenant: &other, ..grant },
            Grant { object: path2, ..grant },
            Grant { file: "g", ..grant },
            Grant { expires: 11, ..grant },
        ] {
            assert!(!signer.verify(changed, &signature));
        }
        assert!(!signer.verify(grant, "not base64!") && !signer.verify(grant, ""));
        assert!(!Signer { key: [8; 32] }.verify(grant, &signature));
    }
}

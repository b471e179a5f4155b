//! Keys that the configuration file lists.

use sha2::{Digest, Sha256};
use trainyard_protocol::{TenantId, hex};
use trainyard_scheduler::Role;
use trainyard_wire::auth::KEY_PREFIX;

/// The tenant of a server without keys.
pub const LOCAL_TENANT: &str = "local";

/// A key of the configuration file.
#[derive(Clone, Debug)]
pub struct SeedKey {
    /// SHA-256 of the key.
    pub digest: [u8; 32],
    /// The tenant of the key.
    pub tenant: TenantId,
    /// Name for display; any text.
    pub name: String,
    /// Highest role that the key grants.
    pub role: Role,
}

impl SeedKey {
    /// Half of the SHA-256 of the digest. It names the key in tokens, which everybody can read.
    pub(super) fn fingerprint(&self) -> String {
        hex(&Sha256::digest(self.digest)[..16])
    }
}

/// The keys and tenants of the configuration file.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    entries: Vec<SeedKey>,
    /// Tenants that the file names.
    tenants: Vec<TenantId>,
    /// The tenants whose admins manage all tenants.
    operators: Vec<TenantId>,
    /// Whether a server without keys accepts requests that a proxy passed on.
    trusts_forwarded: bool,
    /// Whether callers always need keys or tokens.
    required: bool,
}

impl Keys {
    /// Returns no configured keys: while the store has none either, every well-formed key belongs to the tenant
    /// `local`. Only for servers on loopback.
    pub fn local() -> Self {
        Self::default()
    }

    /// Makes keys of members from pairs (SHA-256 of the key, its tenant).
    pub fn new(entries: Vec<([u8; 32], TenantId)>) -> Self {
        let key = |(digest, tenant)| SeedKey { digest, tenant, name: "key".to_owned(), role: Role::Member };
        Self::seed(entries.into_iter().map(key).collect(), Vec::new(), Vec::new())
    }

    /// Makes keys from entries of the file. `tenants` are further tenants, which may have keys in the store; the
    /// admins of `operators` manage all tenants.
    pub fn seed(entries: Vec<SeedKey>, tenants: Vec<TenantId>, operators: Vec<TenantId>) -> Self {
        Self { entries, tenants, operators, ..Self::default() }
    }

    /// Accepts requests that came through a proxy although the server has no keys: everybody is then the tenant
    /// `local`.
    #[must_use]
    pub fn trust_forwarded(self) -> Self {
        Self { trusts_forwarded: true, ..self }
    }

    /// Requires a key or a token of an issuer, even if the file lists no keys.
    #[must_use]
    pub fn require(self) -> Self {
        Self { required: true, ..self }
    }

    /// Returns the digest under which a key is stored.
    pub fn digest(key: &str) -> [u8; 32] {
        Sha256::digest(key.as_bytes()).into()
    }

    /// Returns whether the file lists no keys.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns whether a caller needs a key that the file or the store contains, even if the store has none: the file
    /// lists keys, or tenants other than the local one, or an external issuer.
    pub fn are_required(&self) -> bool {
        self.required || !self.is_empty() || self.tenants.iter().any(|tenant| tenant.as_str() != LOCAL_TENANT)
    }

    pub(super) fn trusts_forwarded(&self) -> bool {
        self.trusts_forwarded
    }

    /// Returns the tenants of the file by name, each with whether its admins manage all tenants.
    pub fn tenants(&self) -> Vec<(TenantId, bool)> {
        let mut names: Vec<TenantId> = self.entries.iter().map(|entry| entry.tenant.clone()).collect();
        names.extend(self.tenants.iter().cloned());
        names.sort_unstable();
        names.dedup();
        names.into_iter().map(|name| (name.clone(), self.operators.contains(&name))).collect()
    }

    /// Returns whether the admins of a tenant of the file manage all tenants.
    pub(super) fn is_operator(&self, tenant: &TenantId) -> bool {
        self.operators.contains(tenant)
    }

    pub(super) fn find_fingerprint(&self, fingerprint: &str) -> Option<&SeedKey> {
        self.entries.iter().find(|entry| entry.fingerprint() == fingerprint)
    }

    /// Returns the tenant of a well-formed key that the file lists.
    pub fn tenant(&self, key: &str) -> Option<TenantId> {
        is_well_formed(key).then(|| self.find(&Self::digest(key))).flatten().map(|entry| entry.tenant.clone())
    }

    /// The key with this digest. Looks at every entry, so that the time it takes does not depend on which one matches.
    pub(super) fn find(&self, digest: &[u8; 32]) -> Option<&SeedKey> {
        let mut found = None;
        for entry in &self.entries {
            if equal(&entry.digest, digest) {
                found = Some(entry);
            }
        }
        found
    }
}

pub(super) fn is_well_formed(key: &str) -> bool {
    key.len() > KEY_PREFIX.len() && key.starts_with(KEY_PREFIX)
}

/// Compares without an early exit, in constant time.
pub(crate) fn equal(a: &[u8; 32], b: &[u8; 32]) -> bool {
    let difference = a.iter().zip(b).fold(0u8, |difference, (x, y)| difference | (x ^ y));
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_its_tenant() {
        let keys = Keys::new(vec![
            (Keys::digest("tml-a"), TenantId::new("alpha")),
            (Keys::digest("tml-b"), TenantId::new("beta")),
        ]);
        assert_eq!(keys.tenant("tml-a"), Some(TenantId::new("alpha")));
        assert_eq!(keys.tenant("tml-b"), Some(TenantId::new("beta")));
        for unknown in ["tml-c", "", "tml-", "abc", "sk-tml-x"] {
            assert_eq!(keys.tenant(unknown), None, "{unknown:?}");
        }
        assert_eq!(keys.tenants(), [(TenantId::new("alpha"), false), (TenantId::new("beta"), false)]);
    }

    #[test]
    fn tenants_of_the_file_other_than_the_local_one_require_keys() {
        let naming = |name: &str| Keys::seed(Vec::new(), vec![TenantId::new(name)], Vec::new());
        assert!(!Keys::local().are_required() && !naming(LOCAL_TENANT).are_required());
        assert!(naming("other").are_required());
    }
}

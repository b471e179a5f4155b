//! Tenants in the configuration file: their keys, their shares and their quotas.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

use serde::Deserialize;
use trainyard_protocol::TenantId;
use trainyard_scheduler::{Limit, Policies, Role, TenantLimits, TenantPolicy, TrainingLimits};
use trainyard_wire::auth::KEY_PREFIX;

use super::size;
use crate::auth::{Keys, SeedKey};

/// The least number of bits of a key, by its length.
const KEY_BITS: usize = 128;

/// A table `[[tenants]]`: one tenant with its keys, share and quotas.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileTenant {
    name: String,
    #[serde(default)]
    weight: Option<u64>,
    /// Whether its admins manage all tenants.
    #[serde(default)]
    operator: bool,
    #[serde(default)]
    keys: Vec<TenantKey>,
    #[serde(default)]
    max_runs: Option<u64>,
    #[serde(default)]
    max_queued_tokens: Option<u64>,
    #[serde(default)]
    tokens_per_minute: Option<u64>,
    #[serde(default, deserialize_with = "size::bytes_of_file")]
    max_storage_bytes: Option<u64>,
    #[serde(default)]
    max_queued_requests: Option<u64>,
    #[serde(default, deserialize_with = "size::bytes_of_file")]
    max_queued_bytes: Option<u64>,
    #[serde(default)]
    max_queued_samples: Option<u64>,
    #[serde(default)]
    max_sessions: Option<u64>,
    #[serde(default)]
    pixels_per_minute: Option<u64>,
}

/// A key of a tenant: its text, or its SHA-256 for those who keep secrets out of files.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct TenantKey {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    sha256: Option<String>,
    #[serde(default)]
    role: FileRole,
}

/// The role that a key of the file allows.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FileRole {
    Admin,
    #[default]
    Member,
    ReadOnly,
}

impl From<FileRole> for Role {
    fn from(role: FileRole) -> Self {
        match role {
            FileRole::Admin => Self::Admin,
            FileRole::Member => Self::Member,
            FileRole::ReadOnly => Self::ReadOnly,
        }
    }
}

/// A table `[[keys]]`: the older form, a key that names its tenant, which then has no quotas.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileKey {
    tenant: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    sha256: Option<String>,
    #[serde(default)]
    role: FileRole,
}

/// An error in the tenants or keys of the configuration file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TenantsError {
    /// A tenant has an empty name.
    #[error("tenants: the name of tenant {0} is empty")]
    EmptyName(usize),
    /// Two tenants have the same name.
    #[error("tenants: {0:?} is listed twice")]
    Duplicate(String),
    /// A tenant is listed in both forms.
    #[error("tenants: {0:?} also has [[keys]]; list all its keys under the tenant")]
    BothForms(String),
    /// The weight is 0 or too large.
    #[error("tenants: weight of {0:?} must be from 1 to {most}", most = Limit::Weight.largest())]
    Weight(String),
    /// A quota is 0, which would refuse everything.
    #[error("tenants: {quota} of {tenant:?} must be at least 1; leave it out for no limit")]
    ZeroQuota {
        /// The name of the tenant.
        tenant: String,
        /// The name of the quota in the file.
        quota: &'static str,
    },
    /// A key has neither text nor digest, or both.
    #[error("{list}: {name:?} must have either key or sha256")]
    KeyForm {
        /// The list that contains the key: `keys`, or `tenants` with the tenant's name.
        list: String,
        /// The key's name, or its position in the file.
        name: String,
    },
    /// The text can't be sent as a key by any client.
    #[error("{list}: key of {name:?} must start with {KEY_PREFIX:?} and be longer")]
    KeyText {
        /// The list that contains the key: `keys`, or `tenants` with the tenant's name.
        list: String,
        /// The key's name, or its position in the file.
        name: String,
    },
    /// The key is short enough to be guessed.
    #[error(
        "{list}: key of {name:?} can be guessed: {bits} bits at most, but {KEY_BITS} are needed; use at least 22 random letters \
         and digits after {KEY_PREFIX:?}, or 32 hexadecimal digits (printf tml-; openssl rand -hex 32)"
    )]
    ShortKey {
        /// The list that contains the key: `keys`, or `tenants` with the tenant's name.
        list: String,
        /// The key's name, or its position in the file.
        name: String,
        /// The bits that a random key of this length has.
        bits: usize,
    },
    /// The digest of a key is malformed.
    #[error("{list}: sha256 of {name:?} is not 64 hexadecimal digits")]
    KeyDigest {
        /// The list that contains the key: `keys`, or `tenants` with the tenant's name.
        list: String,
        /// The key's name, or its position in the file.
        name: String,
    },
    /// The key belongs to two tenants, or is listed twice.
    #[error("{list}: {name:?} is the same key as another one in the file")]
    DuplicateKey {
        /// The list that contains the key: `keys`, or `tenants` with the tenant's name.
        list: String,
        /// The key's name, or its position in the file.
        name: String,
    },
    /// A key has no tenant.
    #[error("keys: tenant of {0:?} is empty")]
    KeyTenant(String),
}

/// Returns the limits of tenants without limits of their own, which flags set.
pub(super) fn default_policy(training: TrainingLimits, pixels_per_minute: Option<NonZeroU64>) -> TenantPolicy {
    TenantPolicy { training, pixels_per_minute, ..TenantPolicy::default() }
}

/// Returns the accepted keys and the limits of each tenant; `default` has the limits of tenants without limits of their own.
pub(super) fn resolve(
    tenants: &[FileTenant],
    keys: &[FileKey],
    default: TenantPolicy,
) -> Result<(Keys, Policies), TenantsError> {
    let mut ring = KeyRing::default();
    let mut granted = BTreeMap::new();
    for (index, tenant) in tenants.iter().enumerate() {
        if tenant.name.is_empty() {
            return Err(TenantsError::EmptyName(index + 1));
        }
        if granted.insert(TenantId::new(tenant.name.clone()), limits(tenant)?).is_some() {
            return Err(TenantsError::Duplicate(tenant.name.clone()));
        }
        ring.add_tenant(tenant)?;
    }
    for key in keys {
        if granted.contains_key(&TenantId::new(key.tenant.clone())) {
            return Err(TenantsError::BothForms(key.tenant.clone()));
        }
        ring.add_key(key)?;
    }
    // A tenant without keys here may have some in the store.
    let named = |tenant: &FileTenant| TenantId::new(tenant.name.clone());
    let operators = tenants.iter().filter(|tenant| tenant.operator).map(named).collect();
    let keys = Keys::seed(ring.entries, tenants.iter().map(named).collect(), operators);
    Ok((keys, Policies::new(default, granted)))
}

/// Reads the limits that the file sets for a tenant.
fn limits(tenant: &FileTenant) -> Result<TenantLimits, TenantsError> {
    let given = |limit: &Limit| match limit {
        Limit::Weight => tenant.weight,
        Limit::MaxRuns => tenant.max_runs,
        Limit::MaxQueuedTokens => tenant.max_queued_tokens,
        Limit::TokensPerMinute => tenant.tokens_per_minute,
        Limit::MaxStorageBytes => tenant.max_storage_bytes,
        Limit::MaxQueuedRequests => tenant.max_queued_requests,
        Limit::MaxQueuedBytes => tenant.max_queued_bytes,
        Limit::MaxQueuedSamples => tenant.max_queued_samples,
        Limit::MaxSessions => tenant.max_sessions,
        Limit::PixelsPerMinute => tenant.pixels_per_minute,
    };
    let check = |(limit, value): (Limit, u64)| match (limit.value(value), limit) {
        (Ok(value), _) => Ok((limit, value)),
        (Err(_), Limit::Weight) => Err(TenantsError::Weight(tenant.name.clone())),
        (Err(_), _) => Err(TenantsError::ZeroQuota { tenant: tenant.name.clone(), quota: limit.as_str() }),
    };
    Limit::ALL.iter().filter_map(|limit| Some((*limit, given(limit)?))).map(check).collect()
}

#[derive(Default)]
struct KeyRing {
    entries: Vec<SeedKey>,
    seen: BTreeSet<[u8; 32]>,
}

impl KeyRing {
    fn add_tenant(&mut self, tenant: &FileTenant) -> Result<(), TenantsError> {
        for (index, key) in tenant.keys.iter().enumerate() {
            let location = KeyLocation {
                list: format!("tenants: keys of {:?}", tenant.name),
                name: key.name.clone().unwrap_or_else(|| format!("key {}", index + 1)),
            };
            self.add(&tenant.name, location, key.key.as_deref(), key.sha256.as_deref(), key.role)?;
        }
        Ok(())
    }

    fn add_key(&mut self, key: &FileKey) -> Result<(), TenantsError> {
        let name = key.name.clone().unwrap_or_else(|| key.tenant.clone());
        if key.tenant.is_empty() {
            return Err(TenantsError::KeyTenant(name));
        }
        let location = KeyLocation { list: "keys".to_owned(), name };
        self.add(&key.tenant, location, key.key.as_deref(), key.sha256.as_deref(), key.role)
    }

    fn add(
        &mut self,
        tenant: &str,
        location: KeyLocation,
        key: Option<&str>,
        sha256: Option<&str>,
        role: FileRole,
    ) -> Result<(), TenantsError> {
        let KeyLocation { list, name } = location;
        // A name is shown, logged and kept in the audit log. Whoever names a key after itself gets another name.
        let name = if name.contains(KEY_PREFIX) { format!("key of {tenant}") } else { name };
        let digest = match (key, sha256) {
            (Some(text), None) => match text.strip_prefix(KEY_PREFIX).map(bits_at_most) {
                None | Some(0) => return Err(TenantsError::KeyText { list, name }),
                Some(bits) if bits < KEY_BITS => return Err(TenantsError::ShortKey { list, name, bits }),
                Some(_) => Keys::digest(text),
            },
            (None, Some(digest)) => match parse_digest(digest) {
                Some(digest) => digest,
                None => return Err(TenantsError::KeyDigest { list, name }),
            },
            _ => return Err(TenantsError::KeyForm { list, name }),
        };
        if !self.seen.insert(digest) {
            return Err(TenantsError::DuplicateKey { list, name });
        }
        self.entries.push(SeedKey { digest, tenant: TenantId::new(tenant), name, role: role.into() });
        Ok(())
    }
}

/// The place of a key in the file; the key itself is never printed.
struct KeyLocation {
    list: String,
    name: String,
}

/// Returns the bits that a text of this length has if it is random: 4 for each hexadecimal digit, else 6 for each character
/// as in base64.
fn bits_at_most(text: &str) -> usize {
    let is_hexadecimal = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.chars().count() * if is_hexadecimal { 4 } else { 6 }
}

fn parse_digest(text: &str) -> Option<[u8; 32]> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let mut digest = [0_u8; 32];
    if pairs.len() != digest.len() || !rest.is_empty() {
        return None;
    }
    for (byte, &[high, low]) in digest.iter_mut().zip(pairs) {
        let (high, low) = (char::from(high).to_digit(16)?, char::from(low).to_digit(16)?);
        *byte = (high * 16 + low) as u8;
    }
    Some(digest)
}

#[cfg(test)]
#[path = "tenants_tests.rs"]
mod tests;

//! What tenants are granted at the moment, by the configuration file and by the store.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

use trainyard_protocol::TenantId;

use super::{Limit, LimitChanges, TenantLimits, TenantPolicy};

/// A limit that can't be changed in the store, because the configuration file sets it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: the configuration file sets it to {value}; it can't be changed here", limit.as_str())]
pub(crate) struct FixedLimit {
    limit: Limit,
    value: NonZeroU64,
}

/// The policies of all tenants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    default: TenantPolicy,
    /// Of the configuration file, which wins.
    seed: BTreeMap<TenantId, TenantLimits>,
    /// Of all tenants that have limits.
    tenants: BTreeMap<TenantId, TenantPolicy>,
}

impl Policies {
    /// Those of the configuration file: limits that it does not set are as in `default`.
    pub fn new(default: TenantPolicy, seed: BTreeMap<TenantId, TenantLimits>) -> Self {
        let tenants = seed.iter().map(|(tenant, limits)| (tenant.clone(), limits.policy(default))).collect();
        Self { default, seed, tenants }
    }

    /// The same, with what the store has where the file is silent.
    #[must_use]
    pub(crate) fn with_stored<'a>(&self, stored: impl Iterator<Item = (&'a TenantId, &'a TenantLimits)>) -> Self {
        let Self { default, seed, .. } = self;
        let mut joined = Self::new(*default, seed.clone());
        for (tenant, limits) in stored {
            let limits = self.seed(tenant).map_or_else(|| limits.clone(), |seed| seed.or(limits));
            joined.tenants.insert(tenant.clone(), limits.policy(*default));
        }
        joined
    }

    /// The policy of a tenant.
    pub fn of(&self, tenant: &TenantId) -> &TenantPolicy {
        self.tenants.get(tenant).unwrap_or(&self.default)
    }

    /// The limits that the configuration file sets, if it names the tenant.
    pub fn seed(&self, tenant: &TenantId) -> Option<&TenantLimits> {
        self.seed.get(tenant)
    }

    /// Refuses to change what the configuration file sets: that would have no effect.
    pub(crate) fn check_changes(&self, tenant: &TenantId, changes: &LimitChanges) -> Result<(), FixedLimit> {
        let fixed = |limit: &Limit| Some(FixedLimit { limit: *limit, value: self.seed(tenant)?.get(*limit)? });
        changes.keys().find_map(fixed).map_or(Ok(()), Err)
    }
}

/// What is known of all tenants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grants {
    pub(crate) policies: Policies,
    /// Whose keys and tokens are refused.
    pub(crate) disabled: BTreeSet<TenantId>,
}

/// What the store says of an organisation that has limits or is disabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredGrant {
    pub(crate) tenant: TenantId,
    pub(crate) limits: TenantLimits,
    pub(crate) disabled: bool,
}

impl Grants {
    /// Those of the configuration file with those of the store.
    pub(crate) fn join(file: &Policies, stored: &[StoredGrant]) -> Self {
        Self {
            policies: file.with_stored(stored.iter().map(|grant| (&grant.tenant, &grant.limits))),
            disabled: stored.iter().filter(|grant| grant.disabled).map(|grant| grant.tenant.clone()).collect(),
        }
    }
}

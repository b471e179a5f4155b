//! Limits that tenants are granted at present, from the configuration file and the store.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

use trainyard_protocol::TenantId;

use super::{Limit, LimitChanges, TenantLimits, TenantPolicy};

/// A limit that can't be changed in the store because the configuration file sets it.
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
    /// Limits of the configuration file, which take precedence.
    seed: BTreeMap<TenantId, TenantLimits>,
    /// Policies of all tenants that have limits.
    tenants: BTreeMap<TenantId, TenantPolicy>,
}

impl Policies {
    /// Creates the policies of the configuration file; limits that it does not set are those of `default`.
    pub fn new(default: TenantPolicy, seed: BTreeMap<TenantId, TenantLimits>) -> Self {
        let tenants = seed.iter().map(|(tenant, limits)| (tenant.clone(), limits.policy(default))).collect();
        Self { default, seed, tenants }
    }

    /// Returns these policies with the limits of the store where the file sets none.
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

    /// Returns the policy of tenants for which nothing is set.
    pub fn default_policy(&self) -> &TenantPolicy {
        &self.default
    }

    /// Returns the policy of a tenant.
    pub fn of(&self, tenant: &TenantId) -> &TenantPolicy {
        self.tenants.get(tenant).unwrap_or(&self.default)
    }

    /// Returns the limits that the configuration file sets, if it names the tenant.
    pub fn seed(&self, tenant: &TenantId) -> Option<&TenantLimits> {
        self.seed.get(tenant)
    }

    /// Refuses changes of limits that the configuration file sets, because they would have no effect.
    pub(crate) fn check_changes(&self, tenant: &TenantId, changes: &LimitChanges) -> Result<(), FixedLimit> {
        let fixed = |limit: &Limit| Some(FixedLimit { limit: *limit, value: self.seed(tenant)?.get(*limit)? });
        changes.keys().find_map(fixed).map_or(Ok(()), Err)
    }
}

/// Policies and disabled organisations, as known at present.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grants {
    pub(crate) policies: Policies,
    /// Organisations whose keys and tokens are refused.
    pub(crate) disabled: BTreeSet<TenantId>,
}

/// Row of an organisation that has limits or is disabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredGrant {
    pub(crate) tenant: TenantId,
    pub(crate) limits: TenantLimits,
    pub(crate) disabled: bool,
}

impl Grants {
    /// Combines the limits of the configuration file with those of the store.
    pub(crate) fn join(file: &Policies, stored: &[StoredGrant]) -> Self {
        Self {
            policies: file.with_stored(stored.iter().map(|grant| (&grant.tenant, &grant.limits))),
            disabled: stored.iter().filter(|grant| grant.disabled).map(|grant| grant.tenant.clone()).collect(),
        }
    }
}

//! Limits that the configuration file and the store currently grant to tenants.

use trainyard_protocol::TenantId;

use crate::{Policies, Scheduler, TenantPolicy};

impl Scheduler {
    /// Returns the quotas, rate limits and weights of tenants, from the configuration file and the store.
    pub fn policies(&self) -> Policies {
        self.core.grants.present().policies.clone()
    }

    /// Returns the limits that a tenant is granted at present.
    pub fn policy(&self, tenant: &TenantId) -> TenantPolicy {
        self.core.grants.policy(tenant)
    }

    /// Returns whether an organisation is disabled, so that all its keys and tokens are refused.
    pub fn is_disabled(&self, organisation: &TenantId) -> bool {
        self.core.grants.present().disabled.contains(organisation)
    }
}

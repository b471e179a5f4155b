//! Weights and quotas of organisations in the store.

use std::num::NonZeroU64;

use serde_json::{Map, Value};
use trainyard_protocol::TenantId;

use super::{Access, Act, Directory, Stage};
use crate::store::db::{Conn, RowScope};
use crate::store::organisation_limits;
use crate::{AuditCategory, Error, LimitChanges, NewAuditEntry, Policies, TenantLimits};

impl Directory {
    /// Returns a directory that refuses changes of limits which this configuration file sets. A running scheduler knows
    /// its own file.
    #[must_use]
    pub fn beside_file(self, file: Policies) -> Self {
        match self.0 {
            Access::Beside { database, .. } => Self(Access::Beside { database, file }),
            here @ Access::Here(_) => Self(here),
        }
    }

    /// Returns the limits of an organisation in the store. Those of the configuration file take precedence.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown organisation.
    pub async fn limits(&self, organisation: &TenantId) -> Result<TenantLimits, Error> {
        organisation_limits::limits(&mut self.reader_of(organisation).await?, organisation).await
    }

    /// Sets and unsets limits of an organisation. Returns its limits in the store after the change. Every process
    /// enforces them within a second. Requests that were accepted or started before are unaffected.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown organisation; [`Error::Invalid`] for a limit that the configuration file
    /// sets, or if the changes are empty.
    pub async fn change_limits(&self, organisation: TenantId, changes: LimitChanges) -> Result<TenantLimits, Error> {
        if changes.is_empty() {
            return Err(Error::Invalid("expected at least one limit".to_owned()));
        }
        let check = |file: &Policies| {
            file.check_changes(&organisation, &changes).map_err(|fixed| Error::Invalid(fixed.to_string()))
        };
        match &self.0 {
            Access::Here(core) => check(&core.options.policies)?,
            Access::Beside { file, .. } => check(file)?,
        }
        self.act(ChangeLimits { organisation, changes }).await
    }
}

struct ChangeLimits {
    organisation: TenantId,
    changes: LimitChanges,
}

impl Act for ChangeLimits {
    type Output = TenantLimits;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.organisation)
    }

    async fn make(&self, conn: &mut Conn, _: &Stage) -> Result<TenantLimits, Error> {
        let Self { organisation, changes } = self;
        organisation_limits::lock_organisation(conn, organisation).await?;
        let limits = organisation_limits::limits(conn, organisation).await?.changed(changes);
        organisation_limits::set_limits(conn, organisation, &limits).await?;
        Ok(limits)
    }

    fn entry(&self, _: &TenantLimits) -> Option<NewAuditEntry> {
        let value = |value: Option<NonZeroU64>| value.map_or(Value::Null, |value| Value::from(value.get()));
        let details: Map<String, Value> =
            self.changes.iter().map(|(limit, given)| (limit.as_str().to_owned(), value(*given))).collect();
        let Self { organisation, .. } = self;
        Some(NewAuditEntry {
            organisation: organisation.clone(),
            category: AuditCategory::Organizations,
            event: "organization_limits_change",
            subject: organisation.to_string(),
            details,
        })
    }
}

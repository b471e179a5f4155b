//! Reports of failed logins and of guessed keys, to the log and to audit logs. They never contain the key, and their
//! number is bounded, whatever is sent.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use trainyard_protocol::TenantId;
use trainyard_scheduler::{self as scheduler, Actor, AuditCategory, NewAuditEntry};

use super::authenticator::Authenticator;
use super::given::is_token;
use super::seed::{self, Keys};
use crate::budgets::{AUDITED_FAILURES, WRONG_KEYS};
use crate::error::ApiError;

/// Log lines in [`LOG_PERIOD`].
const MOST_LINES: u32 = 10;
const LOG_PERIOD: Duration = Duration::from_secs(5);
/// The period of [`AUDITED_FAILURES`].
const AUDIT_PERIOD: Duration = Duration::from_secs(3_600);

/// A failure that is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// A login to the console, with the reason.
    Login(&'static str),
    /// An address sent so many wrong keys that it is blocked for a while.
    WrongKeys,
}

/// The number of reports in a period.
#[derive(Default)]
struct Rate(Mutex<Option<(Instant, u32)>>);

impl Rate {
    /// Counts a report, unless there were `most` in the period.
    fn take(&self, most: u32, period: Duration, now: Instant) -> bool {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (start, count) = window.filter(|(start, _)| now.duration_since(*start) < period).unwrap_or((now, 0));
        *window = Some((start, count.saturating_add(1)));
        count < most
    }
}

/// Bounds on the number of reports.
#[derive(Default)]
pub(super) struct FailureReports {
    logged: Rate,
    audited: Rate,
}

impl Authenticator {
    /// Reports a failed login to the console.
    pub(super) async fn report_login(&self, given: &str, error: &ApiError, address: Option<String>) {
        let reason = match error {
            ApiError::Unauthorized(reason) => reason,
            ApiError::Token(_) => "the token is not accepted",
            // Nothing was checked: the sender has to wait, or the store can't be read.
            _ => return,
        };
        let holder = self.organisation_of(given).await;
        self.report_to(Failure::Login(reason), address, holder).await;
    }

    /// Reports a failure that concerns no organisation.
    pub(super) async fn report(&self, failure: Failure, address: Option<String>) {
        self.report_to(failure, address, None).await;
    }

    /// Writes to the log, and to the audit log of the organisation whose key was used, else of all operators.
    async fn report_to(&self, failure: Failure, address: Option<String>, holder: Option<TenantId>) {
        let now = Instant::now();
        let FailureReports { logged, audited } = &self.failures;
        let shown = address.as_deref().unwrap_or("unknown");
        if logged.take(MOST_LINES, LOG_PERIOD, now) {
            let tenant = holder.as_ref().map(TenantId::as_str);
            match failure {
                Failure::Login(reason) => tracing::warn!(address = shown, tenant, reason, "console: login failed"),
                Failure::WrongKeys => {
                    tracing::warn!(
                        address = shown,
                        wrong_keys = WRONG_KEYS,
                        "too many wrong API keys: the address is blocked for a while"
                    );
                }
            }
        }
        if !audited.take(AUDITED_FAILURES, AUDIT_PERIOD, now) {
            return;
        }
        let reported = match holder {
            Some(organisation) => self.append(failure, shown, address.clone(), organisation).await,
            None => self.append_for_operators(failure, shown, address.clone()).await,
        };
        if let Err(error) = reported {
            tracing::warn!(%error, "a failed authentication could not be recorded in the audit log");
        }
    }

    async fn append_for_operators(
        &self,
        failure: Failure,
        of: &str,
        address: Option<String>,
    ) -> Result<(), scheduler::Error> {
        for found in self.scheduler.directory().organisations().await?.into_iter().filter(|found| found.operator) {
            self.append(failure, of, address.clone(), found.name).await?;
        }
        Ok(())
    }

    async fn append(
        &self,
        failure: Failure,
        of: &str,
        address: Option<String>,
        organisation: TenantId,
    ) -> Result<(), scheduler::Error> {
        let (event, details) = match failure {
            Failure::Login(reason) => ("login_fail", ("reason", Value::from(reason))),
            Failure::WrongKeys => ("wrong_keys", ("count", Value::from(WRONG_KEYS))),
        };
        let (name, value) = details;
        let entry = NewAuditEntry {
            organisation,
            category: AuditCategory::Teams,
            event,
            subject: of.to_owned(),
            details: [(name.to_owned(), value)].into_iter().collect(),
        };
        let caller = Actor { name: "a caller without a valid key".to_owned(), key: None, user: None, address };
        caller.scope(self.scheduler.audit_once_an_hour(entry, of)).await
    }

    /// Returns the organisation of a key of the store or the file, valid or not.
    async fn organisation_of(&self, given: &str) -> Option<TenantId> {
        if is_token(given) || !seed::is_well_formed(given) {
            return None;
        }
        let digest = Keys::digest(given);
        match self.keys.find(&digest) {
            Some(seed) => Some(seed.tenant.clone()),
            None => self.stored.find(&digest).await.ok()?.map(|found| found.key.organisation.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_have_a_rate() {
        let (rate, start) = (Rate::default(), Instant::now());
        let taken = |now| (0..5).filter(|_| rate.take(3, LOG_PERIOD, now)).count();
        assert_eq!([taken(start), taken(start), taken(start + LOG_PERIOD)], [3, 0, 3]);
    }
}

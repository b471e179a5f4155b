//! Whether a tenant's quotas admit a request. Asked in the transaction that accepts it, so that the answer holds for
//! all processes on the database.

use trainyard_protocol::{OpError, TenantId};

use crate::core::Core;
use crate::store::db::Conn;
use crate::store::quotas;
use crate::store::requests::{self, RequestTarget};
use crate::{Error, Quota, Refusal, RunSubmission, SampleSubmission};

/// The tenant whose use a submission changes, if that has a quota: others' transactions then wait for this one.
pub(crate) fn counted(core: &Core, tenant: &TenantId, quota: Quota) -> Vec<String> {
    let policy = core.options.policies.of(tenant);
    let limit = match quota {
        Quota::Runs => policy.max_runs,
        Quota::QueuedTokens => policy.max_queued_tokens,
        Quota::StorageBytes => policy.max_storage_bytes,
        Quota::TokensPerMinute => None,
    };
    limit.map(|_| tenant.to_string()).into_iter().collect()
}

/// Refuses another run beyond the quota.
pub(crate) async fn check_run(conn: &mut Conn, core: &Core, tenant: &TenantId) -> Result<(), Error> {
    let policy = core.options.policies.of(tenant);
    if policy.max_runs.is_some() {
        policy.admit_run(quotas::live_runs(conn, tenant).await?).map_err(Error::Quota)?;
    }
    Ok(())
}

/// Refuses a sample beyond the quota, unless it was accepted before.
pub(crate) async fn check_sample(
    conn: &mut Conn,
    core: &Core,
    tenant: &TenantId,
    sample: &SampleSubmission,
) -> Result<(), Error> {
    let policy = core.options.policies.of(tenant);
    if policy.max_queued_tokens.is_none() {
        return Ok(());
    }
    let queued = quotas::queued_tokens(conn, tenant).await?;
    let Err(refusal) = policy.admit_sample(queued, sample.tokens) else { return Ok(()) };
    match requests::find_request(conn, tenant, RequestTarget::Sampling(&sample.sampling_session), sample.seq_id).await?
    {
        Some(_) => Ok(()),
        None => Err(Error::Quota(refusal)),
    }
}

/// Why a save can't be executed: its checkpoint would exceed the storage quota. A training request is not rejected with
/// 429, because its client would send the next one; so its future fails.
pub(crate) async fn storage_refusal(
    conn: &mut Conn,
    core: &Core,
    tenant: &TenantId,
    submission: &RunSubmission,
) -> Result<Option<OpError>, Error> {
    let policy = core.options.policies.of(tenant);
    let Some(kind) = submission.stores.filter(|_| policy.max_storage_bytes.is_some()) else { return Ok(None) };
    let stored = quotas::stored_bytes(conn, tenant).await? + quotas::reserved_bytes(conn, tenant).await?;
    let expected = quotas::checkpoint_bytes(conn, &submission.run, kind.segment()).await?;
    Ok(policy.admit_storage(stored, expected).err().map(|refusal| OpError::user(refusal.to_string())))
}

/// Refuses a checkpoint of so many bytes, registered in this transaction, that makes the tenant exceed its storage quota: at
/// its submission its size was not known.
pub(crate) async fn check_checkpoint(conn: &mut Conn, core: &Core, tenant: &TenantId, bytes: u64) -> Result<(), Error> {
    let policy = core.options.policies.of(tenant);
    if policy.max_storage_bytes.is_some() {
        let stored = quotas::stored_bytes(conn, tenant).await?;
        policy.admit_storage(stored.saturating_sub(bytes), bytes).map_err(Error::Quota)?;
    }
    Ok(())
}

impl Core {
    /// Counts a refusal.
    pub(crate) fn count_refusal<T>(&self, tenant: &TenantId, result: &Result<T, Error>) {
        if let Err(Error::Quota(Refusal { quota, limit, used, .. })) = result {
            self.metrics.refused(*quota, tenant);
            tracing::debug!(%tenant, quota = quota.name(), limit, used, "request rejected: quota exceeded");
        }
    }
}

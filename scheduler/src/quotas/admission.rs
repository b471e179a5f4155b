//! Whether a tenant's quotas admit a request. Asked in the transaction that accepts it, so that the answer holds for
//! all processes on the database.

use trainyard_protocol::{OpError, TenantId};

use crate::context::core::Core;
use crate::store::db::Conn;
use crate::store::requests::{self, RequestTarget};
use crate::store::{quotas, training_queue, uploads};
use crate::{Error, Quota, Refusal, RunSubmission, SampleSubmission};

/// The tenant whose use a submission changes, if that has a quota: others' transactions then wait for this one.
pub(crate) fn counted(core: &Core, tenant: &TenantId, quota: Quota) -> Vec<String> {
    let policy = core.policy(tenant);
    let limit = match quota {
        Quota::Runs => policy.max_runs,
        Quota::QueuedTokens => policy.max_queued_tokens,
        Quota::StorageBytes => policy.max_storage_bytes,
        // There always is one.
        Quota::RunQueuedRequests | Quota::RunQueuedBytes | Quota::QueuedRequests | Quota::QueuedBytes => {
            return vec![tenant.to_string()];
        }
        Quota::TokensPerMinute => None,
    };
    limit.map(|_| tenant.to_string()).into_iter().collect()
}

/// Refuses another run beyond the quota.
pub(crate) async fn check_run(conn: &mut Conn, core: &Core, tenant: &TenantId) -> Result<(), Error> {
    let policy = core.policy(tenant);
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
    let policy = core.policy(tenant);
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

/// Refuses a request to a run while its queue or that of its tenant is full, and one that lies too far ahead of what the
/// run waits for, unless it was accepted before. The request that the run waits for is always admitted: what is queued
/// behind it can't be executed before.
pub(crate) async fn check_training(
    conn: &mut Conn,
    core: &Core,
    tenant: &TenantId,
    submission: &RunSubmission,
) -> Result<(), Error> {
    let Err(error) = admit_training(conn, core, tenant, submission).await? else { return Ok(()) };
    let target = RequestTarget::Run(&submission.run);
    match requests::find_request(conn, tenant, target, submission.seq_id).await? {
        Some(_) => Ok(()),
        None => Err(error),
    }
}

/// As [`check_training`], for a request that was not accepted before.
async fn admit_training(
    conn: &mut Conn,
    core: &Core,
    tenant: &TenantId,
    submission: &RunSubmission,
) -> Result<Result<(), Error>, Error> {
    let RunSubmission { run, seq_id, payload, rejected, .. } = submission;
    let limits = core.policy(tenant).training;
    let gap = limits.gap();
    let Some(last) = training_queue::last_arrived(conn, tenant, run).await? else { return Ok(Ok(())) };
    // No place before it is missing: none was accepted that is farther ahead of a missing one.
    let from = last.saturating_sub(gap).max(0);
    let to = seq_id.saturating_sub(gap);
    if *seq_id > last && to > from && training_queue::count_arrived(conn, run, from, to).await? < to - from {
        let next = training_queue::first_missing(conn, run, from, gap.saturating_add(1)).await?;
        return Ok(Err(Error::SeqGap { seq_id: *seq_id, next, most: gap }));
    }
    if rejected.is_some() {
        // It ends at once.
        return Ok(Ok(()));
    }
    let queued = training_queue::queued_training(conn, tenant, run).await?;
    let Err(refusal) = limits.admit(&queued, payload.len() as u64) else { return Ok(Ok(())) };
    let from = from.min(seq_id.saturating_sub(1));
    let is_next = queued.first.is_none_or(|first| *seq_id < first)
        && training_queue::count_arrived(conn, run, from, *seq_id).await? == seq_id - from;
    Ok(if is_next { Ok(()) } else { Err(Error::Quota(refusal)) })
}

/// Why a save can't be executed: its checkpoint would exceed the storage quota. A training request is not rejected with
/// 429, because its client would send the next one; so its future fails.
pub(crate) async fn storage_refusal(
    conn: &mut Conn,
    core: &Core,
    tenant: &TenantId,
    submission: &RunSubmission,
) -> Result<Option<OpError>, Error> {
    let policy = core.policy(tenant);
    let Some(kind) = submission.stores.filter(|_| policy.max_storage_bytes.is_some()) else { return Ok(None) };
    let stored = quotas::stored_bytes(conn, tenant).await? + quotas::reserved_bytes(conn, tenant).await?;
    let expected = quotas::checkpoint_bytes(conn, &submission.run, kind.segment()).await?;
    Ok(policy.admit_storage(stored, expected).err().map(|refusal| OpError::user(refusal.to_string())))
}

/// Refuses a checkpoint of so many bytes, registered in this transaction, that makes the tenant exceed its storage quota: at
/// its submission its size was not known.
pub(crate) async fn check_checkpoint(conn: &mut Conn, core: &Core, tenant: &TenantId, bytes: u64) -> Result<(), Error> {
    let policy = core.policy(tenant);
    if policy.max_storage_bytes.is_some() {
        let stored = quotas::stored_bytes(conn, tenant).await?;
        policy.admit_storage(stored.saturating_sub(bytes), bytes).map_err(Error::Quota)?;
    }
    Ok(())
}

/// Refuses uploads that make the tenant exceed its storage quota, as they are in this transaction.
pub(crate) async fn check_uploads(conn: &mut Conn, core: &Core, tenant: &TenantId) -> Result<(), Error> {
    let policy = core.policy(tenant);
    if policy.max_storage_bytes.is_some() {
        let stored = quotas::stored_bytes(conn, tenant).await? + quotas::reserved_bytes(conn, tenant).await?;
        let (_, bytes) = uploads::open_uploads(conn, tenant).await?;
        policy.admit_storage(stored, bytes).map_err(Error::Quota)?;
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

//! Admission of requests by a tenant's quotas. It is decided in the transaction that accepts the request, so that the
//! answer holds for all processes on the database.

use trainyard_protocol::{OpError, TenantId};

use crate::context::core::Core;
use crate::store::db::Conn;
use crate::store::requests::{self, RequestTarget};
use crate::store::training_queue::Arrived;
use crate::store::{quotas, training_queue, uploads};
use crate::{Error, Quota, Refusal, RunSubmission, SampleSubmission};

/// Returns the tenant whose usage a submission changes, if a quota applies: transactions of others then wait for this
/// one.
pub(crate) fn counted(core: &Core, tenant: &TenantId, quota: Quota) -> Vec<String> {
    let policy = core.grants.policy(tenant);
    let limit = match quota {
        Quota::Runs => policy.max_runs,
        Quota::QueuedTokens => policy.max_queued_tokens,
        Quota::StorageBytes => policy.max_storage_bytes,
        // These quotas always apply.
        Quota::RunQueuedRequests
        | Quota::RunQueuedBytes
        | Quota::QueuedRequests
        | Quota::QueuedBytes
        | Quota::Sessions => {
            return vec![tenant.to_string()];
        }
        Quota::TokensPerMinute | Quota::QueuedSamples => None,
    };
    limit.map(|_| tenant.to_string()).into_iter().collect()
}

/// Refuses a run beyond the quota.
pub(crate) async fn check_run(conn: &mut Conn, core: &Core, tenant: &TenantId) -> Result<(), Error> {
    let policy = core.grants.policy(tenant);
    if policy.max_runs.is_some() {
        policy.admit_run(quotas::live_runs(conn, tenant).await?).map_err(Error::Quota)?;
    }
    Ok(())
}

/// Refuses a session beyond the quota.
pub(crate) async fn check_session(conn: &mut Conn, core: &Core, tenant: &TenantId) -> Result<(), Error> {
    let policy = core.grants.policy(tenant);
    let kept = quotas::kept_sessions(conn, tenant, policy.max_sessions.get()).await?;
    policy.admit_session(kept).map_err(Error::Quota)
}

/// Refuses a sample beyond the quota, unless it was accepted before.
pub(crate) async fn check_sample(
    conn: &mut Conn,
    core: &Core,
    tenant: &TenantId,
    sample: &SampleSubmission,
) -> Result<(), Error> {
    let policy = core.grants.policy(tenant);
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

/// Refuses a request to a run while the queue of the run or of its tenant is full, and a request too far ahead of the
/// run's next one, unless it was accepted before. The run's next request is always admitted: requests queued behind it
/// can't be executed before it. A request whose row was deleted is refused as gone.
pub(crate) async fn check_training(
    conn: &mut Conn,
    core: &Core,
    tenant: &TenantId,
    submission: &RunSubmission,
) -> Result<(), Error> {
    let RunSubmission { run, seq_id, .. } = submission;
    let Some(arrived) = training_queue::arrived(conn, tenant, run).await? else { return Ok(()) };
    let refused = match *seq_id < arrived.ended_before {
        true => Err(Error::Gone { what: "request", id: format!("{seq_id} of training run {run}") }),
        false => admit_training(conn, core, tenant, submission, arrived).await?,
    };
    let Err(error) = refused else { return Ok(()) };
    match requests::find_request(conn, tenant, RequestTarget::Run(run), *seq_id).await? {
        Some(_) => Ok(()),
        None => Err(error),
    }
}

/// Checks a request as [`check_training`] does, but assumes that it was not accepted before.
async fn admit_training(
    conn: &mut Conn,
    core: &Core,
    tenant: &TenantId,
    submission: &RunSubmission,
    arrived: Arrived,
) -> Result<Result<(), Error>, Error> {
    let RunSubmission { run, seq_id, payload, rejected, .. } = submission;
    let limits = core.grants.policy(tenant).training;
    let gap = limits.gap();
    let last = arrived.last;
    // No position before `from` is missing, because no request was accepted that far ahead of a gap.
    let from = last.saturating_sub(gap).max(arrived.ended_before);
    let to = seq_id.saturating_sub(gap);
    if *seq_id > last && to > from && training_queue::count_arrived(conn, run, arrived, from, to).await? < to - from {
        let next = training_queue::first_missing(conn, run, from, gap.saturating_add(1)).await?;
        return Ok(Err(Error::SeqGap { seq_id: *seq_id, next, most: gap }));
    }
    let queued = training_queue::queued_training(conn, tenant, run).await?;
    // Rows stay until all before them have ended, also those of requests that are refused at once.
    let behind = limits.admit_behind(&queued, *seq_id);
    if rejected.is_some() || behind.is_err() {
        // A rejected request ends at once, so it does not count.
        return Ok(behind.map_err(Error::Quota));
    }
    let Err(refusal) = limits.admit(&queued, payload.len() as u64) else { return Ok(Ok(())) };
    let from = from.min(seq_id.saturating_sub(1));
    let is_next = queued.first.is_none_or(|first| *seq_id < first)
        && training_queue::count_arrived(conn, run, arrived, from, *seq_id).await? == seq_id - from;
    Ok(if is_next { Ok(()) } else { Err(Error::Quota(refusal)) })
}

/// Returns the error of a save whose checkpoint would exceed the storage quota. A training request is not rejected with
/// 429, because its client would send the next one; so its future fails.
pub(crate) async fn storage_refusal(
    conn: &mut Conn,
    core: &Core,
    tenant: &TenantId,
    submission: &RunSubmission,
) -> Result<Option<OpError>, Error> {
    let policy = core.grants.policy(tenant);
    let Some(kind) = submission.stores.filter(|_| policy.max_storage_bytes.is_some()) else { return Ok(None) };
    let stored = quotas::stored_bytes(conn, tenant).await? + quotas::reserved_bytes(conn, tenant).await?;
    let expected = quotas::checkpoint_bytes(conn, &submission.run, kind.segment()).await?;
    Ok(policy.admit_storage(stored, expected).err().map(|refusal| OpError::user(refusal.to_string())))
}

/// Refuses a checkpoint of `bytes`, registered in this transaction, if it makes the tenant exceed its storage quota:
/// its size was unknown at submission.
pub(crate) async fn check_checkpoint(conn: &mut Conn, core: &Core, tenant: &TenantId, bytes: u64) -> Result<(), Error> {
    let policy = core.grants.policy(tenant);
    if policy.max_storage_bytes.is_some() {
        let stored = quotas::stored_bytes(conn, tenant).await?;
        policy.admit_storage(stored.saturating_sub(bytes), bytes).map_err(Error::Quota)?;
    }
    Ok(())
}

/// Refuses uploads, including those of this transaction, that make the tenant exceed its storage quota.
pub(crate) async fn check_uploads(conn: &mut Conn, core: &Core, tenant: &TenantId) -> Result<(), Error> {
    let policy = core.grants.policy(tenant);
    if policy.max_storage_bytes.is_some() {
        let stored = quotas::stored_bytes(conn, tenant).await? + quotas::reserved_bytes(conn, tenant).await?;
        let (_, bytes) = uploads::open_uploads(conn, tenant).await?;
        policy.admit_storage(stored, bytes).map_err(Error::Quota)?;
    }
    Ok(())
}

impl Core {
    /// Counts a refusal by a quota.
    pub(crate) fn count_refusal<T>(&self, tenant: &TenantId, result: &Result<T, Error>) {
        if let Err(Error::Quota(Refusal { quota, limit, used, .. })) = result {
            self.metrics.refused(*quota, tenant);
            tracing::debug!(%tenant, quota = quota.name(), limit, used, "request rejected: quota exceeded");
        }
    }
}

//! Fences writes: a write about a request takes effect only while this worker has the request.

use crate::Error;
use crate::context::core::Core;
use crate::queue::Fence;
use crate::store::db::Conn;
use crate::store::leases;

/// Returns whether this worker still has the lease of the run that a write is about, and keeps it so until the
/// transaction ends. The claim on a sample is checked when the sample is ended.
pub(crate) async fn holds_lease(conn: &mut Conn, core: &Core, fence: &Fence) -> Result<bool, Error> {
    match (fence, core.worker_id()) {
        (Fence::Run(run, epoch), Some(worker)) => leases::holds_run(conn, worker, run, *epoch).await,
        (Fence::Sample(_), Some(_)) => Ok(true),
        (_, None) => Ok(false),
    }
}

/// Returns the claim on a sample: worker and number.
pub(crate) fn sample_claim<'a>(core: &'a Core, fence: &Fence) -> Option<(&'a str, i64)> {
    match fence {
        Fence::Run(..) => None,
        Fence::Sample(claim) => core.worker_id().map(|worker| (worker, *claim)),
    }
}

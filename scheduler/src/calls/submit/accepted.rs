//! Inserts a request, or finds the one that it repeats.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use trainyard_protocol::{RequestId, SessionId};

use crate::calls::sessions::ensure_alive;
use crate::context::core::Core;
use crate::store::blobs::StoredBytes;
use crate::store::db::Conn;
use crate::store::requests::{self, ExistingRequest, NewRequest, RequestTarget};
use crate::store::{sampling, sessions};
use crate::writer::write::Write;
use crate::{Error, RequestKind, SamplingSession, Submitted};

/// A write that accepts a request.
pub(super) trait Submit: Write<Output = Accepted> {
    fn payload(&self) -> &StoredBytes;
}

/// A durably accepted request.
pub(super) struct Accepted {
    pub(super) submitted: Submitted,
    /// New request for the queue; `None` if it was accepted before.
    pub(super) fresh: Option<Fresh>,
}

pub(super) struct Fresh {
    pub(super) arrival: i64,
    pub(super) session: SessionId,
    /// Worker that has the run's lease.
    pub(super) owner: Option<String>,
    pub(super) sampling: Option<Arc<SamplingSession>>,
}

impl Accepted {
    pub(super) fn known(id: RequestId, num_samples: u32) -> Self {
        Self { submitted: submitted(id, num_samples), fresh: None }
    }

    pub(super) fn fresh(id: RequestId, num_samples: u32, fresh: Fresh) -> Self {
        Self { submitted: submitted(id, num_samples), fresh: Some(fresh) }
    }
}

fn submitted(id: RequestId, num_samples: u32) -> Submitted {
    let sample_sequence_ids = (0..num_samples).map(|index| format!("{id}:{index}")).collect();
    Submitted { request_id: id, sample_sequence_ids }
}

pub(super) enum Inserted {
    /// A new request, with its place in the order of arrival.
    New(i64),
    /// A request that was accepted before.
    Known(ExistingRequest),
}

/// Inserts a request, unless it was accepted before, its session no longer accepts requests, or it samples from a
/// snapshot that was collected.
pub(super) async fn insert_or_find(conn: &mut Conn, core: &Core, new: &NewRequest<'_>) -> Result<Inserted, Error> {
    if let Some(arrival) = requests::insert_request(conn, new, core.now()).await? {
        return Ok(Inserted::New(arrival));
    }
    if let Some(existing) = requests::find_request(conn, new.tenant, new.target, new.seq_id).await? {
        return Ok(Inserted::Known(existing));
    }
    let session = sessions::session_row(conn, new.tenant, new.session).await?;
    ensure_alive(conn, core, &session).await?;
    if let RequestTarget::Sampling(id) = new.target
        && sampling::sampling_session(conn, new.tenant, id).await?.collected
    {
        return Err(core.snapshot_collected(id));
    }
    let arrival = requests::insert_request(conn, new, core.now()).await?;
    let refused = || Error::store("accept a request", format!("request {} was not inserted", new.id));
    arrival.map(Inserted::New).ok_or_else(refused)
}

/// Epoch of the lease, or number of the claim, of a new row.
pub(super) const FIRST_EPOCH: i64 = 1;

/// Returns a digest of everything that a retry must have in common with the first attempt.
pub(super) fn fingerprint(kind: RequestKind, num_samples: u32, identity: &[u8]) -> Vec<u8> {
    let mut hash = Sha256::new();
    hash.update(kind.as_str().as_bytes());
    hash.update([0]);
    hash.update(num_samples.to_le_bytes());
    hash.update(identity);
    hash.finalize().to_vec()
}

//! Results of NCCL's functions, and what their handles stand for.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};

use cuda_sim_client::Client;

use crate::comm::Comm;
use crate::hub::wait_for_answers;
use crate::numbers::number;

/// A `ncclResult_t` other than success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) c_int);

pub(crate) const UNHANDLED_CUDA_ERROR: Status = Status(1);
pub(crate) const SYSTEM_ERROR: Status = Status(2);
pub(crate) const INVALID_ARGUMENT: Status = Status(4);
pub(crate) const REMOTE_ERROR: c_int = 6;

pub(crate) type Result<T = ()> = std::result::Result<T, Status>;

/// Communicators by their handles.
static COMMS: Mutex<BTreeMap<usize, Arc<Comm>>> = Mutex::new(BTreeMap::new());

/// The communicator of a handle.
pub(crate) fn comm(handle: usize) -> Result<Arc<Comm>> {
    let comms = COMMS.lock().unwrap_or_else(PoisonError::into_inner);
    comms.get(&handle).cloned().ok_or(INVALID_ARGUMENT)
}

/// Ends a communicator after its collectives that run or are queued.
pub(crate) fn destroy(handle: usize) -> Result {
    let comm = remove(handle)?;
    let finished = Client::open().and_then(|client| client.finish(comm.group));
    leave(&comm);
    finished.map_err(|_| UNHANDLED_CUDA_ERROR)
}

/// Ends a communicator at once: its running and queued collectives stop.
pub(crate) fn abort(handle: usize) -> Result {
    let comm = remove(handle)?;
    leave(&comm);
    Ok(())
}

fn remove(handle: usize) -> Result<Arc<Comm>> {
    COMMS.lock().unwrap_or_else(PoisonError::into_inner).remove(&handle).ok_or(INVALID_ARGUMENT)
}

fn leave(comm: &Comm) {
    comm.leave();
    wait_for_answers();
}

/// The handle of a new communicator.
pub(crate) fn add(comm: Comm) -> usize {
    let handle = number() << 4;
    COMMS.lock().unwrap_or_else(PoisonError::into_inner).insert(handle, Arc::new(comm));
    handle
}

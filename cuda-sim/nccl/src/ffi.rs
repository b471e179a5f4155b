//! The C functions of NCCL. Pointers are used as NVIDIA's documentation allows.
#![allow(unsafe_code, reason = "functions that C calls, with its pointers")]
#![allow(non_snake_case, reason = "the names of NCCL's functions")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::PathBuf;

use cuda_sim_client::Client;

use crate::comm::{Collective, Comm, Message};
use crate::group;
use crate::handles::{
    INVALID_ARGUMENT, REMOTE_ERROR, Result, SYSTEM_ERROR, Status, UNHANDLED_CUDA_ERROR, abort, add, comm, destroy,
};
use crate::hub;
use crate::message::{Call, Kind};
use crate::numbers::number;
use crate::progress_thread;
use crate::reduce::size;

/// Version number of NCCL 2.27.3.
const VERSION: c_int = 22703;

const ID_BYTES: usize = 128;

/// Holds the path of the hub's socket, and zeros.
#[repr(C)]
#[derive(Clone, Copy)]
struct UniqueId([u8; ID_BYTES]);

/// # Safety
///
/// `to` is null or writable.
unsafe fn put<T>(to: *mut T, value: T) -> Result {
    if to.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null, and writable by the contract of this function.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

fn join(id: &UniqueId, world: c_int, rank: c_int) -> Result<usize> {
    let (Ok(world), Ok(rank)) = (usize::try_from(world), usize::try_from(rank)) else { return Err(INVALID_ARGUMENT) };
    if rank >= world {
        return Err(INVALID_ARGUMENT);
    }
    let text: Vec<u8> = id.0.iter().copied().take_while(|byte| *byte != 0).collect();
    let path = PathBuf::from(String::from_utf8(text).map_err(|_| INVALID_ARGUMENT)?);
    let comm = Comm::join(&path, rank, world).map_err(|error| {
        eprintln!("cuda-sim: rank {rank} of {world} can't join: {error}");
        SYSTEM_ERROR
    })?;
    progress_thread::start();
    Ok(add(comm))
}

/// Parameters of a collective from the caller.
struct Request {
    kind: Kind,
    send: u64,
    receive: u64,
    count: usize,
    element: c_int,
    operation: c_int,
    root: c_int,
}

fn submit(request: &Request, handle: usize, stream: usize) -> Result {
    let comm = comm(handle)?;
    if comm.has_failed() {
        return Err(Status(REMOTE_ERROR));
    }
    let element = u8::try_from(request.element).map_err(|_| INVALID_ARGUMENT)?;
    let operation = u8::try_from(request.operation).map_err(|_| INVALID_ARGUMENT)?;
    let root = u32::try_from(request.root).map_err(|_| INVALID_ARGUMENT)?;
    if root as usize >= comm.world {
        return Err(INVALID_ARGUMENT);
    }
    let parts = if request.kind == Kind::ReduceScatter { comm.world } else { 1 };
    let send_bytes = request.count * parts * size(element).ok_or(INVALID_ARGUMENT)?;
    let call = Call { kind: request.kind, element, operation, root, count: request.count as u64 };
    let collective = Collective { call, send: request.send, send_bytes, receive: request.receive };
    let client = Client::open().map_err(|_| UNHANDLED_CUDA_ERROR)?;
    let label = format!("{:?} of rank {}", request.kind, comm.rank);
    let (group, work) = (comm.group, move |client: &Client| comm.run(&collective, client));
    client.call_waiting(stream, group, &label, Box::new(work)).map_err(|_| UNHANDLED_CUDA_ERROR)
}

macro_rules! exported {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        #[allow(unused_unsafe, reason = "some functions use no pointer")]
        unsafe extern "C" fn $name($($arg: $ty),*) -> c_int {
            // SAFETY: the caller keeps the contract of NCCL for the pointers that it passes.
            let body = || -> Result { unsafe { $body } };
            match body() {
                Ok(()) => 0,
                Err(status) => status.0,
            }
        }
    )*};
}

exported! {
    fn ncclGetVersion(version: *mut c_int) {
        put(version, VERSION)
    }

    fn ncclGetUniqueId(id: *mut UniqueId) {
        let number = number();
        let name = format!("cudasim-nccl-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut bytes = [0; ID_BYTES];
        let text = path.to_string_lossy();
        let place = bytes.get_mut(..text.len()).ok_or(SYSTEM_ERROR)?;
        place.copy_from_slice(text.as_bytes());
        hub::start(&path).map_err(|_| SYSTEM_ERROR)?;
        put(id, UniqueId(bytes))
    }

    fn ncclCommInitRank(handle: *mut usize, world: c_int, id: UniqueId, rank: c_int) {
        put(handle, join(&id, world, rank)?)
    }

    fn ncclCommInitRankConfig(handle: *mut usize, world: c_int, id: UniqueId, rank: c_int, _config: *mut c_void) {
        put(handle, join(&id, world, rank)?)
    }

    fn ncclCommFinalize(handle: usize) {
        comm(handle).map(|_| ())
    }

    fn ncclCommDestroy(handle: usize) {
        destroy(handle)
    }

    fn ncclCommAbort(handle: usize) {
        abort(handle)
    }

    fn ncclCommGetAsyncError(handle: usize, status: *mut c_int) {
        put(status, if comm(handle)?.has_failed() { REMOTE_ERROR } else { 0 })
    }

    fn ncclCommCount(handle: usize, count: *mut c_int) {
        put(count, comm(handle)?.world as c_int)
    }

    fn ncclCommUserRank(handle: usize, rank: *mut c_int) {
        put(rank, comm(handle)?.rank as c_int)
    }

    fn ncclCommCuDevice(handle: usize, device: *mut c_int) {
        put(device, comm(handle)?.rank as c_int)
    }

    fn ncclGroupStart() {
        group::start();
        Ok(())
    }

    fn ncclGroupEnd() {
        group::end()
    }

    fn ncclAllReduce(
        send: u64, receive: u64, count: usize, element: c_int, operation: c_int, handle: usize, stream: usize,
    ) {
        let kind = Kind::AllReduce;
        submit(&Request { kind, send, receive, count, element, operation, root: 0 }, handle, stream)
    }

    fn ncclBroadcast(
        send: u64, receive: u64, count: usize, element: c_int, root: c_int, handle: usize, stream: usize,
    ) {
        let kind = Kind::Broadcast;
        submit(&Request { kind, send, receive, count, element, operation: 0, root }, handle, stream)
    }

    fn ncclReduce(
        send: u64, receive: u64, count: usize, element: c_int, operation: c_int, root: c_int, handle: usize,
        stream: usize,
    ) {
        let kind = Kind::Reduce;
        submit(&Request { kind, send, receive, count, element, operation, root }, handle, stream)
    }

    fn ncclAllGather(send: u64, receive: u64, count: usize, element: c_int, handle: usize, stream: usize) {
        let kind = Kind::AllGather;
        submit(&Request { kind, send, receive, count, element, operation: 0, root: 0 }, handle, stream)
    }

    fn ncclReduceScatter(
        send: u64, receive: u64, count: usize, element: c_int, operation: c_int, handle: usize, stream: usize,
    ) {
        let kind = Kind::ReduceScatter;
        submit(&Request { kind, send, receive, count, element, operation, root: 0 }, handle, stream)
    }

    fn ncclSend(data: u64, count: usize, element: c_int, peer: c_int, handle: usize, stream: usize) {
        group::send(handle, stream, message(data, count, element, peer)?)
    }

    fn ncclRecv(data: u64, count: usize, element: c_int, peer: c_int, handle: usize, stream: usize) {
        group::receive(handle, stream, message(data, count, element, peer)?)
    }
}

/// A message as the caller names it.
fn message(data: u64, count: usize, element: c_int, peer: c_int) -> Result<Message> {
    let element = u8::try_from(element).map_err(|_| INVALID_ARGUMENT)?;
    let peer = u32::try_from(peer).map_err(|_| INVALID_ARGUMENT)?;
    Ok((peer, data, count * size(element).ok_or(INVALID_ARGUMENT)?))
}

/// Text of a status.
#[unsafe(no_mangle)]
extern "C" fn ncclGetErrorString(status: c_int) -> *const c_char {
    let text: &CStr = match status {
        0 => c"no error",
        1 => c"unhandled cuda error",
        2 => c"unhandled system error",
        4 => c"invalid argument",
        5 => c"invalid usage, or not simulated",
        6 => c"remote process exited or there was a network error",
        _ => c"internal error",
    };
    text.as_ptr()
}

//! NCCL: the functions that ranks with a GPU each need, opened by the name under which packages install the library.
#![allow(unsafe_code, reason = "NCCL is C: functions are looked up and called here, with addresses of slices")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::sync::Arc;

use libloading::Library;

use super::error::{CudaError, Result};
use super::wheels;

/// Names of the library; packages install only the first one.
const NAMES: [&str; 2] = ["libnccl.so.2", "libnccl.so"];

const FLOAT: c_int = 7;

/// Identifier of a communicator: `ncclUniqueId`. One rank makes it and sends it to the others before they join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct NcclId(pub [u8; 128]);

pub(crate) type Communicator = *mut c_void;

pub(crate) type Stream = *mut c_void;

type Status = c_int;

macro_rules! functions {
    ($($field:ident = $symbol:literal: fn($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions, as NVIDIA's documentation of NCCL declares them. Addresses are numbers here.
        struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            fn find(library: &Library) -> Result<Self> {
                $(
                    // SAFETY: the function has this type in every version of NCCL 2.
                    let $field = unsafe { library.get::<unsafe extern "C" fn($($argument),*) -> $result>($symbol.as_bytes()) };
                    let $field = *$field.map_err(|_| CudaError::NoSymbol { library: "libnccl", symbol: $symbol })?;
                )*
                Ok(Self { $($field),* })
            }
        }
    };
}

functions! {
    version = "ncclGetVersion": fn(*mut c_int) -> Status;
    unique_id = "ncclGetUniqueId": fn(*mut NcclId) -> Status;
    init = "ncclCommInitRank": fn(*mut Communicator, c_int, NcclId, c_int) -> Status;
    abort = "ncclCommAbort": fn(Communicator) -> Status;
    async_error = "ncclCommGetAsyncError": fn(Communicator, *mut Status) -> Status;
    all_gather = "ncclAllGather": fn(u64, u64, usize, c_int, Communicator, Stream) -> Status;
    broadcast = "ncclBroadcast": fn(u64, u64, usize, c_int, c_int, Communicator, Stream) -> Status;
    send = "ncclSend": fn(u64, usize, c_int, c_int, Communicator, Stream) -> Status;
    receive = "ncclRecv": fn(u64, usize, c_int, c_int, Communicator, Stream) -> Status;
    group_start = "ncclGroupStart": fn() -> Status;
    group_end = "ncclGroupEnd": fn() -> Status;
    error_string = "ncclGetErrorString": fn(Status) -> *const c_char;
}

/// The NCCL library, opened by this process.
pub struct Nccl {
    functions: Functions,
    /// Functions are there while it is. It stays loaded, since threads of its own may end later than communicators.
    _library: ManuallyDrop<Library>,
}

/// Address and number of a message's elements, and the other rank.
pub(crate) type Message = (u64, usize, usize);

impl Nccl {
    /// Opens the library.
    ///
    /// # Errors
    ///
    /// Fails if the library is not installed, or lacks a function.
    pub fn open() -> Result<Arc<Self>> {
        // SAFETY: NCCL's initialisers are meant to run in any process.
        let open = |path: PathBuf| unsafe { Library::new(path) }.ok();
        let library = NAMES.iter().map(PathBuf::from).chain(wheels::files(&NAMES)).find_map(open);
        let library = library.ok_or(CudaError::NoLibrary { library: "libnccl.so.2", purpose: "NCCL" })?;
        Ok(Arc::new(Self { functions: Functions::find(&library)?, _library: ManuallyDrop::new(library) }))
    }

    /// Returns the version of the library, such as 22703 for 2.27.3.
    pub fn version(&self) -> Result<i32> {
        let mut version = 0;
        // SAFETY: the number is written before the function returns.
        self.check("ncclGetVersion", unsafe { (self.functions.version)(&raw mut version) })?;
        Ok(version)
    }

    /// Returns an id for a new communicator. One of its ranks calls this.
    pub fn new_id(&self) -> Result<NcclId> {
        let mut id = NcclId([0; 128]);
        // SAFETY: the id is written before the function returns.
        self.check("ncclGetUniqueId", unsafe { (self.functions.unique_id)(&raw mut id) })?;
        Ok(id)
    }

    fn check(&self, call: &'static str, status: Status) -> Result {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: every status has a text, which is NCCL's and stays.
        let text = unsafe { (self.functions.error_string)(status) };
        let message = if text.is_null() {
            format!("status {status}")
        } else {
            // SAFETY: the text ends with a zero.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        };
        Err(CudaError::Collective { call, message })
    }

    /// Joins the communicator of an id as one of `world` ranks, on the thread's device. Waits for the others.
    pub(crate) fn join(&self, id: NcclId, rank: c_int, world: c_int) -> Result<Communicator> {
        let mut communicator = std::ptr::null_mut();
        // SAFETY: the handle is written before the function returns.
        let status = unsafe { (self.functions.init)(&raw mut communicator, world, id, rank) };
        self.check("ncclCommInitRank", status)?;
        Ok(communicator)
    }

    /// Ends a communicator. `ncclCommDestroy` would wait for the machine's other ranks, which may end later or have failed.
    pub(crate) fn leave(&self, communicator: Communicator) {
        // SAFETY: the handle belongs to the caller, which does not use it again. An error can't be handled.
        let _ = unsafe { (self.functions.abort)(communicator) };
    }

    /// Returns the error of collectives that were started, if there is one.
    pub(crate) fn failure(&self, communicator: Communicator) -> Result {
        let mut status = 0;
        // SAFETY: the handle is the caller's; the status is written before the function returns.
        let asked = unsafe { (self.functions.async_error)(communicator, &raw mut status) };
        self.check("ncclCommGetAsyncError", asked)?;
        // `ncclInProgress` is none.
        if status == 7 { Ok(()) } else { self.check("a collective", status) }
    }

    /// `count` elements of each rank, in their order.
    ///
    /// # Safety
    ///
    /// There are that many at `from`, and as many for each rank at `to`.
    pub(crate) unsafe fn all_gather(
        &self,
        from: u64,
        to: u64,
        count: usize,
        communicator: Communicator,
        stream: Stream,
    ) -> Result {
        // SAFETY: by the contract of this function.
        let status = unsafe { (self.functions.all_gather)(from, to, count, FLOAT, communicator, stream) };
        self.check("ncclAllGather", status)
    }

    /// The elements of rank `root` to all.
    ///
    /// # Safety
    ///
    /// There are `count` elements at `at`.
    pub(crate) unsafe fn broadcast(
        &self,
        at: u64,
        count: usize,
        root: c_int,
        communicator: Communicator,
        stream: Stream,
    ) -> Result {
        // SAFETY: by the contract of this function; both addresses may be the same.
        let status = unsafe { (self.functions.broadcast)(at, at, count, FLOAT, root, communicator, stream) };
        self.check("ncclBroadcast", status)
    }

    /// Sends and receives messages at once.
    ///
    /// # Safety
    ///
    /// Each message's elements are there.
    pub(crate) unsafe fn exchange(
        &self,
        sent: &[Message],
        received: &[Message],
        communicator: Communicator,
        stream: Stream,
    ) -> Result {
        // SAFETY: groups are ended below, also after an error.
        self.check("ncclGroupStart", unsafe { (self.functions.group_start)() })?;
        let pass = |name, function: unsafe extern "C" fn(u64, usize, c_int, c_int, Communicator, Stream) -> Status| {
            move |(at, count, peer): &Message| {
                // SAFETY: by the contract of this function.
                let status = unsafe { function(*at, *count, FLOAT, *peer as c_int, communicator, stream) };
                self.check(name, status)
            }
        };
        let started = sent
            .iter()
            .try_for_each(pass("ncclSend", self.functions.send))
            .and_then(|()| received.iter().try_for_each(pass("ncclRecv", self.functions.receive)));
        // SAFETY: the group that began above.
        let ended = self.check("ncclGroupEnd", unsafe { (self.functions.group_end)() });
        started.and(ended)
    }
}

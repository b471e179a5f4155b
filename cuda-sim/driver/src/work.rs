//! Operations that streams run.

use std::sync::Arc;

use cuda_sim_ptx::{Dim, Kernel};

use crate::clock::Clock;
use crate::ffi::host::{HostCall, HostMemory};

/// A kernel of a loaded module.
pub(crate) type LoadedKernel = Arc<Kernel>;

#[derive(Debug, Clone)]
pub(crate) enum Work {
    Launch(Launch),
    /// A copy from memory that the host may change after the call: the call takes the bytes.
    Write {
        to: u64,
        bytes: Arc<Vec<u8>>,
    },
    /// A copy from page-locked memory: the bytes are read when the copy runs.
    WritePinned {
        to: u64,
        from: HostMemory,
    },
    Read {
        from: u64,
        to: HostMemory,
    },
    Copy {
        to: u64,
        from: u64,
        length: usize,
    },
    Fill {
        to: u64,
        pattern: Vec<u8>,
        length: usize,
    },
    /// Memory that is there from now on, in the order of the stream.
    Allocated {
        address: u64,
        length: usize,
    },
    Free {
        address: u64,
    },
    Record {
        event: usize,
    },
    /// Wait for what an event recorded before this was submitted.
    Wait {
        event: usize,
        recording: u64,
    },
    Call(HostCall),
}

#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) kernel: LoadedKernel,
    pub(crate) grid: Dim,
    pub(crate) block: Dim,
    pub(crate) dynamic_shared: usize,
    pub(crate) params: Vec<u8>,
}

/// Work on a stream, with what the host knew to be complete when it submitted it.
#[derive(Debug, Clone)]
pub(crate) struct Submission {
    pub(crate) work: Work,
    pub(crate) known: Clock,
}

impl Work {
    /// Name of the operation in messages.
    pub(crate) fn label(&self) -> String {
        match self {
            Self::Launch(launch) => launch.kernel.name().to_owned(),
            Self::Write { .. } | Self::WritePinned { .. } => "copy to the device".to_owned(),
            Self::Read { .. } => "copy to the host".to_owned(),
            Self::Copy { .. } => "copy".to_owned(),
            Self::Fill { .. } => "memset".to_owned(),
            Self::Allocated { .. } => "allocation".to_owned(),
            Self::Free { .. } => "free".to_owned(),
            Self::Record { .. } => "event record".to_owned(),
            Self::Wait { .. } => "event wait".to_owned(),
            Self::Call(call) => call.label().to_owned(),
        }
    }
}

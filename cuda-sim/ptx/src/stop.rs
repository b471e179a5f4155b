//! Why a launch stopped.

use thiserror::Error;

/// A launch that did not complete: what happened, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Stop {
    /// The class, for programs.
    pub kind: StopKind,
    /// The whole story, for people: kernel, block, thread, line and text of the instruction.
    pub message: String,
}

/// Classes of errors that stop a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopKind {
    /// An address outside every allocation, or outside the block's shared memory.
    OutOfBounds,
    /// An address that is not a multiple of the size of the access.
    Misaligned,
    /// A read of bytes that were never written.
    Uninitialised,
    /// Two accesses to one address, one of them a write, that nothing orders.
    Race,
    /// Two operations on different streams that touch one address, and no event orders them.
    StreamOrder,
    /// A warp or block operation that some of its threads never reach.
    Divergence,
    /// A launch that the device refuses: too many threads, too much shared memory.
    BadLaunch,
    /// `trap`, or an instruction with operands that the interpreter does not know.
    Trap,
    /// More instructions than the limit of the launch: probably an endless loop.
    StepLimit,
}

impl Stop {
    pub(crate) fn new(kind: StopKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

//! Calls that ranks must agree on, and errors of calls.

use std::fmt;
use std::time::Duration;

/// A kind of collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Sums of all ranks' arrays, on all ranks.
    AllReduce,
    /// Sums of all ranks' arrays, a slice on each rank.
    ReduceScatter,
    /// Arrays of all ranks, on all ranks.
    AllGather,
    /// Arrays of all ranks, on one rank.
    Gather {
        /// The rank that receives.
        root: usize,
    },
    /// A part of each rank's array for each rank.
    AllToAll,
    /// Bytes of one rank, on all ranks.
    Broadcast {
        /// The rank that sends.
        root: usize,
    },
    /// A barrier: all ranks wait for each other.
    Barrier,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllReduce => f.write_str("all-reduce"),
            Self::ReduceScatter => f.write_str("reduce-scatter"),
            Self::AllGather => f.write_str("all-gather"),
            Self::Gather { root } => write!(f, "gather to rank {root}"),
            Self::AllToAll => f.write_str("all-to-all"),
            Self::Broadcast { root } => write!(f, "broadcast from rank {root}"),
            Self::Barrier => f.write_str("barrier"),
        }
    }
}

/// A call of a collective: equal on all ranks that enter it together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Operation that is called.
    pub operation: Operation,
    /// Extents that all ranks share; empty if they may differ.
    pub shape: Vec<usize>,
}

impl Call {
    /// Returns a call with the extents that all ranks share.
    pub fn new(operation: Operation, shape: &[usize]) -> Self {
        Self { operation, shape: shape.to_vec() }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.operation)?;
        if self.shape.is_empty() { Ok(()) } else { write!(f, " of {:?}", self.shape) }
    }
}

/// A failed collective. The ranks cannot continue: the worker ends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CollectiveError {
    /// Ranks called different collectives, or with different extents.
    #[error("rank {rank} entered {theirs} while rank {other} entered {call}")]
    Mismatch {
        /// The rank that differs.
        rank: usize,
        /// The differing call of that rank.
        theirs: Call,
        /// The rank that it is compared with.
        other: usize,
        /// The call of that other rank.
        call: Call,
    },
    /// A rank ended, or its connection broke.
    #[error("rank {rank} was lost during {call}: {reason}")]
    Lost {
        /// The rank that was lost.
        rank: usize,
        /// The call of the reporting rank.
        call: Call,
        /// Known details of the cause.
        reason: String,
    },
    /// A rank ended, or its connection broke, which is known without a call.
    #[error("rank {rank} was lost: {reason}")]
    Gone {
        /// The rank that was lost.
        rank: usize,
        /// Known details of the cause.
        reason: String,
    },
    /// A rank did not enter the call in time.
    #[error("rank {rank} did not enter {call} within {limit:?}")]
    TimedOut {
        /// The rank that is missing.
        rank: usize,
        /// The call that the others wait in.
        call: Call,
        /// Time limit of the wait.
        limit: Duration,
    },
    /// A rank sent data of another type or length than the call has.
    #[error("rank {rank} sent {found} in {call}, not {expected}")]
    Malformed {
        /// The rank that sent the data.
        rank: usize,
        /// The call of the reporting rank.
        call: Call,
        /// Description of the received data.
        found: String,
        /// Description of the expected data.
        expected: String,
    },
    /// A rank cannot continue, for a reason of its own.
    #[error("rank {rank} failed: {reason}")]
    Failed {
        /// The rank that failed.
        rank: usize,
        /// The reason given by that rank.
        reason: String,
    },
    /// The ranks could not be connected.
    #[error("ranks cannot be connected: {0}")]
    Rendezvous(String),
}

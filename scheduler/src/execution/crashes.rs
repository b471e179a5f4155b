//! Crashes of workers that a request may have caused.

/// Crash count if the machine ran out of memory: the worker's requests are the most likely cause.
const OUT_OF_MEMORY: i64 = 4;
/// Crash count without evidence: the process may as well have been killed, or the machine may have lost power.
const NO_EVIDENCE: i64 = 1;
/// Crash count from which a request is quarantined, that is, executed in isolation.
pub(crate) const QUARANTINE_CRASHES: u64 = 12;
/// Number of isolated starts from which a request is a poison request.
const ISOLATED_STARTS: u64 = 12;

/// The way in which a worker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkerEnd {
    /// The worker released its leases itself.
    Orderly,
    /// The worker disappeared without evidence of a cause.
    Crashed,
    /// The machine ran out of memory.
    OutOfMemory,
}

impl WorkerEnd {
    /// Returns the addition to the crash count of a request that the worker had.
    pub(crate) fn crash_count(self) -> i64 {
        match self {
            Self::Orderly => 0,
            Self::Crashed => NO_EVIDENCE,
            Self::OutOfMemory => OUT_OF_MEMORY,
        }
    }

    /// Returns the addition to the isolated starts of a request that was executed in isolation; its start counted one.
    pub(crate) fn isolated_starts(self) -> i64 {
        (self.crash_count() - NO_EVIDENCE).max(0)
    }
}

/// Crashes that a request may have caused, for example by using too much memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CrashRecord {
    /// Crash count of workers that had the request, perhaps among others; see [`WorkerEnd::crash_count`].
    pub(crate) count: u64,
    /// Number of starts without any other in-flight request; see [`WorkerEnd::isolated_starts`].
    pub(crate) isolated_starts: u64,
}

impl CrashRecord {
    /// Whether the request must be executed in isolation, to find out whether it is a poison request.
    pub(crate) fn is_quarantined(self) -> bool {
        self.count >= QUARANTINE_CRASHES
    }

    /// Whether the request crashed its worker in every isolated start.
    pub(crate) fn is_poison(self) -> bool {
        self.isolated_starts >= ISOLATED_STARTS
    }
}

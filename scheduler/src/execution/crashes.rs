//! Crashes of workers that a request may have caused.

/// What a crash counts when the machine ran out of memory: most likely the worker's requests took it.
const OUT_OF_MEMORY: i64 = 4;
/// What a crash counts without evidence: as likely somebody killed the process, or the machine lost power.
const NO_EVIDENCE: i64 = 1;
/// Crash count from which a request is quarantined: it is executed in isolation.
pub(crate) const QUARANTINE_CRASHES: u64 = 12;
/// Count of isolated starts from which a request is a poison request.
const ISOLATED_STARTS: u64 = 12;

/// How a worker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkerEnd {
    /// It released its leases itself.
    Orderly,
    /// Without evidence of a cause.
    Crashed,
    /// The machine ran out of memory.
    OutOfMemory,
}

impl WorkerEnd {
    /// What it adds to the crash count of a request that the worker had.
    pub(crate) fn crash_count(self) -> i64 {
        match self {
            Self::Orderly => 0,
            Self::Crashed => NO_EVIDENCE,
            Self::OutOfMemory => OUT_OF_MEMORY,
        }
    }

    /// What it adds to the isolated starts of the request that was executed in isolation; its start counted one.
    pub(crate) fn isolated_starts(self) -> i64 {
        (self.crash_count() - NO_EVIDENCE).max(0)
    }
}

/// Crashes that a request may have caused, as by using more memory than there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CrashRecord {
    /// Workers that crashed while they had it, perhaps among other requests; see [`WorkerEnd::crash_count`].
    pub(crate) count: u64,
    /// How often it was started with no other in-flight request; see [`WorkerEnd::isolated_starts`].
    pub(crate) isolated_starts: u64,
}

impl CrashRecord {
    /// Whether it has to be executed in isolation, to find out whether it is a poison request.
    pub(crate) fn is_quarantined(self) -> bool {
        self.count >= QUARANTINE_CRASHES
    }

    /// Whether it crashed its worker in every isolated start.
    pub(crate) fn is_poison(self) -> bool {
        self.isolated_starts >= ISOLATED_STARTS
    }
}

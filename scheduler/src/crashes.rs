//! Crashes of workers that a request may have caused.

/// Crash count from which a request is quarantined: it is executed in isolation.
const QUARANTINE_CRASHES: u64 = 3;
/// Most isolated starts of a request.
const ISOLATED_ATTEMPTS: u64 = 3;

/// Crashes that a request may have caused, as by using more memory than there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CrashRecord {
    /// Workers that crashed while they had it, perhaps among other requests.
    pub(crate) count: u64,
    /// How often it was started with no other in-flight request.
    pub(crate) isolated_starts: u64,
}

impl CrashRecord {
    /// Whether it has to be executed in isolation, to find out whether it is a poison request.
    pub(crate) fn is_quarantined(self) -> bool {
        self.count >= QUARANTINE_CRASHES
    }

    /// Whether it crashed its worker in every isolated start.
    pub(crate) fn is_poison(self) -> bool {
        self.isolated_starts >= ISOLATED_ATTEMPTS
    }
}

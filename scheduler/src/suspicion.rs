//! What is held against a request: that workers ended while they had it.

/// Deaths of workers after which a request that each of them had is executed alone.
const SUSPECT: u64 = 3;
/// Times that a request is started alone.
const ATTEMPTS: u64 = 3;

/// Deaths that a request may have caused, as by taking more memory than there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Suspicion {
    /// Workers that ended while they had it, perhaps among others.
    pub(crate) deaths: u64,
    /// How often it was started with nothing beside it.
    pub(crate) alone: u64,
}

impl Suspicion {
    /// Whether nothing else is to be executed beside it, so that it is known whether it is to blame.
    pub(crate) fn is_suspect(self) -> bool {
        self.deaths >= SUSPECT
    }

    /// Whether it is to blame.
    pub(crate) fn is_condemned(self) -> bool {
        self.alone >= ATTEMPTS
    }
}

//! Data that is needed to retry a save.

use std::time::{Duration, Instant};

use trainyard_protocol::{Operation, TenantShare};

/// Maximum time that a save waits for space before it fails.
const PATIENCE: Duration = Duration::from_secs(600);
/// Pause before the first retry; doubled for each further one, up to `MOST_PAUSE`.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest pause between two attempts.
const MOST_PAUSE: Duration = Duration::from_secs(30);

/// Data that is needed to write a client's save again.
#[derive(Clone, Debug)]
pub(super) struct SaveAttempt {
    pub(super) share: TenantShare,
    pub(super) operation: Operation,
    started: Instant,
    pause: Duration,
}

impl SaveAttempt {
    /// State for a save about to be executed for the first time.
    pub(super) fn first(share: TenantShare, operation: Operation) -> Self {
        Self { share, operation, started: Instant::now(), pause: PAUSE }
    }

    /// Returns whether another attempt may follow.
    pub(super) fn is_patient(&self) -> bool {
        self.started.elapsed() < PATIENCE
    }

    /// Pause before the next attempt, each time longer.
    pub(super) fn next_pause(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = (pause * 2).min(MOST_PAUSE);
        pause
    }
}

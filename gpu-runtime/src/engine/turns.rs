//! Whose turn the engine's next step is: control operations, training and sampling share its one thread.

use std::time::Duration;

/// Sampling passes between two training microbatches when both are waiting.
pub(super) const PASSES_PER_MICROBATCH: usize = 16;

/// Whose turn it is. The order of turns decides when a result is there, and no bit of it.
///
/// Control operations take turns with batches. One that took long (the restore of a large run, a step of all parameters)
/// is followed by as much time of sampling, so that tenants that sample keep half of the engine beside tenants whose
/// runs are saved and restored in turn.
#[derive(Debug, Default)]
pub(super) struct Turns {
    last_was_control: bool,
    /// Time that control operations took from waiting samples, less what sampling has had since.
    owed: Duration,
    /// Sampling passes since the last training microbatch.
    passes: usize,
}

/// Kinds of work that wait for a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) control: bool,
    pub(super) training: bool,
    pub(super) sampling: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Control,
    Sampling,
    Training,
}

impl Turns {
    /// Whose turn it is; `None` when nothing waits.
    pub(super) fn next(&mut self, waiting: Waiting) -> Option<Turn> {
        let Waiting { control, training, sampling } = waiting;
        if !sampling {
            self.owed = Duration::ZERO;
        }
        let others_first = (self.last_was_control && training) || (sampling && self.is_after_control());
        if control && !others_first {
            Some(Turn::Control)
        } else if sampling && (!training || self.passes < PASSES_PER_MICROBATCH) {
            Some(Turn::Sampling)
        } else {
            training.then_some(Turn::Training)
        }
    }

    fn is_after_control(&self) -> bool {
        self.last_was_control || !self.owed.is_zero()
    }

    /// Records a turn that `took` so long while samples were waiting or not.
    pub(super) fn record(&mut self, turn: Turn, took: Duration, sampling: bool) {
        self.last_was_control = turn == Turn::Control;
        match turn {
            Turn::Control if sampling => self.owed += took,
            Turn::Control => {}
            Turn::Sampling => {
                self.passes += 1;
                self.owed = self.owed.saturating_sub(took);
            }
            Turn::Training => self.passes = 0,
        }
    }

    /// Whether the last sampling pass ended a round of them.
    pub(super) fn ends_round(&self) -> bool {
        self.passes.is_multiple_of(PASSES_PER_MICROBATCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Waiting = Waiting { control: true, training: true, sampling: true };

    /// The turns taken while the same kinds of work wait; `milliseconds` is the duration of each turn.
    fn turns(waiting: Waiting, milliseconds: impl Fn(Turn) -> u64, count: usize) -> Vec<Turn> {
        let mut turns = Turns::default();
        (0..count)
            .map_while(|_| {
                let turn = turns.next(waiting)?;
                turns.record(turn, Duration::from_millis(milliseconds(turn)), waiting.sampling);
                Some(turn)
            })
            .collect()
    }

    fn share(turns: &[Turn], of: Turn) -> usize {
        turns.iter().filter(|turn| **turn == of).count()
    }

    #[test]
    fn short_control_operations_alternate_with_batches() {
        let taken = turns(ALL, |_| 1, 67);
        let shares = [Turn::Control, Turn::Sampling, Turn::Training].map(|turn| share(&taken, turn));
        assert_eq!(shares, [33, 32, 2]);
    }

    #[test]
    fn sampling_has_as_much_time_as_long_control_operations() {
        let waiting = Waiting { training: false, ..ALL };
        let taken = turns(waiting, |turn| if turn == Turn::Control { 100 } else { 4 }, 260);
        assert_eq!(share(&taken, Turn::Control), 10);
        assert_eq!(share(&taken, Turn::Sampling), 250);
    }

    #[test]
    fn training_goes_on_while_control_operations_wait_for_sampling() {
        let taken = turns(ALL, |turn| if turn == Turn::Control { 1000 } else { 1 }, 1065);
        assert!(share(&taken, Turn::Training) >= 60, "{taken:?}");
        assert_eq!(share(&taken, Turn::Control), 2);
    }

    #[test]
    fn nothing_is_owed_to_samples_that_did_not_wait() {
        let mut turns = Turns::default();
        let no_samples = Waiting { sampling: false, ..ALL };
        turns.record(Turn::Control, Duration::from_secs(9), false);
        assert_eq!(turns.next(no_samples), Some(Turn::Training));
        turns.record(Turn::Training, Duration::from_secs(1), true);
        assert_eq!(turns.next(ALL), Some(Turn::Control));
        turns.record(Turn::Control, Duration::from_secs(9), true);
        turns.record(Turn::Training, Duration::from_secs(1), true);
        assert_eq!(turns.next(no_samples), Some(Turn::Control), "the samples have ended");
        assert_eq!(turns.next(Waiting { control: false, training: false, sampling: false }), None);
    }
}

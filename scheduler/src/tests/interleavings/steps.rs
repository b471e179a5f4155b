//! Steps that may happen to the processes of a world.

use proptest::prelude::*;

/// A step. Its numbers choose among the present objects, modulo their count.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Submits a run's next request, through a process.
    Submit {
        run: usize,
        through: usize,
    },
    /// Submits an earlier request again.
    Resubmit {
        which: usize,
        through: usize,
    },
    Sample {
        sampler: usize,
        through: usize,
    },
    /// A client gives up a sample.
    Cancel {
        which: usize,
        through: usize,
    },
    Poll {
        which: usize,
        through: usize,
    },
    /// A worker takes the ready work.
    Take {
        worker: usize,
    },
    /// A worker completes one of the requests that it holds.
    Complete {
        worker: usize,
        which: usize,
    },
    /// A process performs its periodic round.
    Round {
        process: usize,
    },
    /// A process crashes, and is started again when it is next needed.
    Crash {
        process: usize,
    },
    /// A process ends orderly.
    Stop {
        process: usize,
    },
    /// A worker sends no heartbeat for longer than its lease, so that another process may end it.
    Sleep {
        worker: usize,
        other: usize,
    },
    /// The clients send no heartbeat for so long that a process ends their session.
    Expire {
        through: usize,
    },
    /// The clients send a heartbeat.
    Heartbeat {
        through: usize,
    },
    Pass,
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let any = || 0..64_usize;
    let step = prop_oneof![
        16 => (any(), any()).prop_map(|(run, through)| Step::Submit { run, through }),
        4 => (any(), any()).prop_map(|(which, through)| Step::Resubmit { which, through }),
        6 => (any(), any()).prop_map(|(sampler, through)| Step::Sample { sampler, through }),
        3 => (any(), any()).prop_map(|(which, through)| Step::Cancel { which, through }),
        4 => (any(), any()).prop_map(|(which, through)| Step::Poll { which, through }),
        18 => any().prop_map(|worker| Step::Take { worker }),
        18 => (any(), any()).prop_map(|(worker, which)| Step::Complete { worker, which }),
        4 => any().prop_map(|process| Step::Round { process }),
        2 => any().prop_map(|process| Step::Crash { process }),
        1 => any().prop_map(|process| Step::Stop { process }),
        2 => (any(), any()).prop_map(|(worker, other)| Step::Sleep { worker, other }),
        3 => any().prop_map(|through| Step::Expire { through }),
        1 => any().prop_map(|through| Step::Heartbeat { through }),
        2 => Just(Step::Pass),
    ];
    prop::collection::vec(step, 20..60)
}

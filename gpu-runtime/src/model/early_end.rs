//! The early end of a pass whose result nobody needs, at the same point on all ranks.

use std::cell::Cell;

use crate::collective::Ranks;
use crate::interrupt::Interrupt;

/// Decides before each block of a pass whether it ends there. Ranks decide together, by the answer of rank 0, and all of
/// them the same number of times: a rank that leaves out blocks makes up for their decisions with [`EarlyEnd::finish`].
#[derive(Default)]
pub(crate) struct EarlyEnd {
    ranks: Ranks,
    /// Set when nobody waits for the pass. Only that of rank 0 matters.
    interrupt: Interrupt,
    /// Number of decisions that are left.
    left: Cell<usize>,
    has_come: Cell<bool>,
}

impl EarlyEnd {
    /// An end that all of `ranks` decide on, as often as their passes ask.
    pub(crate) fn new(ranks: &Ranks, interrupt: Interrupt) -> Self {
        Self { ranks: ranks.clone(), interrupt, ..Self::default() }
    }

    /// The end of a pass through so many blocks that are in memory, forward and, if it `trains`, back, where so many blocks are
    /// repeated.
    pub(crate) fn of_blocks(self, blocks: usize, trains: bool, repeated: usize) -> Self {
        // One before each block, and one after each half.
        let backward = if trains { blocks + 1 + repeated } else { 0 };
        Self { left: Cell::new(blocks + 1 + backward), ..self }
    }

    /// Decides whether the pass ends here. Once it does, nothing more is decided. A pass also ends when ranks can no
    /// longer exchange anything: its result would not be used.
    pub(crate) fn decide(&self) -> bool {
        if !self.has_come.get() {
            self.left.set(self.left.get().saturating_sub(1));
            let own = self.interrupt.is_set();
            self.has_come.set(self.ranks.decide(u8::from(own)) != 0 || self.ranks.check().is_err());
        }
        self.has_come.get()
    }

    /// Whether the pass has ended early, here or on ranks that have gone further.
    pub(crate) fn has_come(&self) -> bool {
        self.has_come.get()
    }

    /// Takes part in the decisions of other ranks that this rank's pass has left out.
    pub(crate) fn finish(&self) {
        while self.left.get() > 0 && !self.decide() {}
    }
}

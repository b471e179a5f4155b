//! Ranks execute the same engine in lockstep.
//!
//! Every rank has an engine with its part of each weight, adapter, moment and KV block, and calls its methods with the
//! same arguments in the same order. What the engine does next follows from these calls and from results that are the
//! same bits on all ranks, with two exceptions, which are decided here: whose turn it is depends on a clock, and the
//! work that background threads have finished depends on the disk. Rank 0 decides both. At the end of each step the
//! ranks meet, and compare digests of what they have computed.

use trainyard_protocol::OpError;

use super::turns::Turn;
use crate::collective::Ranks;

/// A digest of results, by which ranks notice that they differ: 64 bits of FNV-1a over words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    pub(super) fn add(&mut self, word: u32) {
        self.0 = (self.0 ^ u64::from(word)).wrapping_mul(0x0100_0000_01b3);
    }

    /// The value as an extent of a collective, on which ranks must agree.
    pub(super) fn extent(self) -> usize {
        // Half of the bits are enough, and fit everywhere.
        (self.0 >> 32) as usize
    }
}

/// Codes of [`Turn`]s; the position is the code.
const TURNS: [Option<Turn>; 4] = [None, Some(Turn::Control), Some(Turn::Sampling), Some(Turn::Training)];

/// The turn that rank 0 takes next.
pub(super) fn agreed_turn(ranks: &Ranks, next: impl FnOnce() -> Option<Turn>) -> Option<Turn> {
    if ranks.is_single() {
        return next();
    }
    let own = if ranks.rank() == 0 { next() } else { None };
    let code = TURNS.iter().position(|turn| *turn == own).unwrap_or(0);
    TURNS.get(usize::from(ranks.decide(code as u8))).copied().flatten()
}

/// Returns this rank's value if all ranks have one.
///
/// # Errors
/// This rank's error, or that of the first rank that has one.
pub(super) fn agreed<T>(ranks: &Ranks, own: Result<T, OpError>) -> Result<T, OpError> {
    if ranks.is_single() {
        return own;
    }
    let error = own.as_ref().err();
    let mine = error.map(|error| serde_json::to_vec(error).unwrap_or_default()).unwrap_or_default();
    let all = ranks.all_bytes(mine);
    let other = all.iter().find(|bytes| !bytes.is_empty());
    match (own, other) {
        (Ok(_), Some(error)) => {
            Err(serde_json::from_slice(error).unwrap_or_else(|_| OpError::server("another rank failed")))
        }
        (own, _) => own,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::collective::local_ranks;

    fn on_ranks<T: Send>(world: usize, work: impl Fn(Ranks) -> T + Sync) -> Vec<T> {
        thread::scope(|scope| {
            let ranks = local_ranks(world, Duration::from_secs(60)).into_iter();
            let running: Vec<_> = ranks.map(|rank| scope.spawn(|| work(Ranks::new(Arc::new(rank))))).collect();
            running.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    fn digests_depend_on_the_order() {
        let of = |words: &[u32]| {
            let mut digest = Digest::default();
            words.iter().for_each(|word| digest.add(*word));
            digest.extent()
        };
        assert_eq!(of(&[1, 2]), of(&[1, 2]));
        assert_ne!(of(&[1, 2]), of(&[2, 1]));
        assert_ne!(of(&[0]), of(&[0, 0]));
    }

    #[test]
    fn turns_are_those_of_rank_0() {
        for turn in TURNS {
            let taken = on_ranks(3, |ranks| {
                agreed_turn(&ranks, || if ranks.rank() == 0 { turn } else { Some(Turn::Training) })
            });
            assert_eq!(taken, [turn; 3]);
        }
    }

    #[test]
    fn a_failure_of_one_rank_is_that_of_all() {
        let fails = |rank: usize| {
            on_ranks(3, move |ranks| {
                let own =
                    if ranks.rank() >= rank { Err(OpError::user(format!("{} fails", ranks.rank()))) } else { Ok(1) };
                agreed(&ranks, own).map_err(|error| error.message)
            })
        };
        assert_eq!(fails(3), [Ok(1), Ok(1), Ok(1)]);
        assert_eq!(fails(1), ["1 fails", "1 fails", "2 fails"].map(|text| Err(text.to_owned())));
    }
}

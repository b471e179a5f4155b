//! Bytes that a rank sends in a collective: by the transports of this crate, and the minimum that is possible.

use super::call::Operation;
use super::rank::{ONE_EXCHANGE, slice_of};

/// Kinds of collectives that move rows, gradients or parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CollectiveKind {
    /// Sums of all ranks' arrays, on all ranks.
    AllReduce,
    /// Sums of all ranks' arrays, a slice on each rank.
    ReduceScatter,
    /// Arrays of all ranks, on all ranks.
    AllGather,
    /// A part of each rank's array for each rank.
    AllToAll,
}

impl CollectiveKind {
    /// All kinds in the order of tables.
    pub const ALL: [Self; 4] = [Self::AllReduce, Self::ReduceScatter, Self::AllGather, Self::AllToAll];

    /// Returns the name of the kind in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all-reduce",
            Self::ReduceScatter => "reduce-scatter",
            Self::AllGather => "all-gather",
            Self::AllToAll => "all-to-all",
        }
    }

    /// The kind of an operation; `None` if it moves plans, decisions or checkpoints.
    pub(super) fn of(operation: Operation) -> Option<Self> {
        match operation {
            Operation::AllReduce => Some(Self::AllReduce),
            Operation::ReduceScatter => Some(Self::ReduceScatter),
            Operation::AllGather => Some(Self::AllGather),
            Operation::AllToAll => Some(Self::AllToAll),
            Operation::Gather { .. } | Operation::Broadcast { .. } | Operation::Barrier => None,
        }
    }

    /// Returns the number of elements that rank `rank` of `world` sends to others through the exchanges of
    /// [`Collective`](super::Collective). `len` is the length of the array that a rank begins with; for an all-to-all,
    /// that of everything it distributes in equal parts, its own part included.
    pub fn sent(self, len: usize, rank: usize, world: usize) -> usize {
        let others = world - 1;
        let own = || slice_of(len, world, rank).len();
        match self {
            // Slices to their ranks, then its own sum to all.
            Self::AllReduce if len > ONE_EXCHANGE => len - own() + others * own(),
            Self::AllReduce | Self::AllGather => others * len,
            Self::ReduceScatter | Self::AllToAll => len - own(),
        }
    }

    /// Returns the minimum number of elements that a rank sends if all send the same (Thakur et al. 2005,
    /// doi:10.1177/1094342005051521), with `len` as for [`CollectiveKind::sent`]: `2 (N - 1) / N` of an array for an
    /// all-reduce, `(N - 1) / N` for a reduce-scatter or an all-to-all, `N - 1` of a rank's own array for an
    /// all-gather.
    pub fn least(self, len: usize, world: usize) -> f64 {
        let (len, ranks) = (len as f64, world as f64);
        match self {
            Self::AllReduce => 2.0 * (ranks - 1.0) / ranks * len,
            Self::ReduceScatter | Self::AllToAll => (ranks - 1.0) / ranks * len,
            Self::AllGather => (ranks - 1.0) * len,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use super::super::meter::Metered;
    use super::*;
    use crate::collective::{Collective, local_ranks};

    /// Elements that each of `world` ranks sent, by kind.
    fn counted(world: usize, work: impl Fn(&Metered) + Sync) -> Vec<Vec<u64>> {
        thread::scope(|scope| {
            let work = &work;
            let run = move |rank| {
                let rank = Metered::new(Arc::new(rank));
                work(&rank);
                CollectiveKind::ALL.map(|kind| rank.read().sent(kind)).to_vec()
            };
            let ranks = local_ranks(world, Duration::from_secs(60)).into_iter();
            let running: Vec<_> = ranks.map(|rank| scope.spawn(move || run(rank))).collect();
            running.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    fn what_is_predicted_is_what_is_counted() {
        for world in [2, 3, 4] {
            for len in [world, 4_095, 4_096, 4_097, 10_001, 30_000] {
                let values = vec![1.0f32; len];
                let parts = |rank| values[slice_of(len, world, rank)].to_vec();
                let sent = counted(world, |rank| {
                    rank.all_reduce(&mut values.clone()).unwrap();
                    rank.reduce_scatter(&values).unwrap();
                    rank.all_gather(values.clone()).unwrap();
                    rank.all_to_all(1, (0..world).map(parts).collect()).unwrap();
                    rank.barrier().unwrap();
                });
                for (rank, bytes) in sent.iter().enumerate() {
                    let expected = CollectiveKind::ALL.map(|kind| 4 * kind.sent(len, rank, world) as u64);
                    assert_eq!(bytes[..], expected, "rank {rank} of {world}, {len} elements");
                }
                for kind in CollectiveKind::ALL {
                    let total: u64 = sent.iter().map(|bytes| bytes[kind as usize]).sum();
                    let least = 4.0 * world as f64 * kind.least(len, world);
                    let whole = kind == CollectiveKind::AllReduce && len <= ONE_EXCHANGE && world > 2;
                    assert!(total as f64 >= least * (1.0 - 1e-9), "{kind:?}: {total} of at least {least}");
                    assert!(whole || total as f64 <= least * 1.001, "{kind:?}: {total} of at least {least}");
                }
            }
        }
    }
}

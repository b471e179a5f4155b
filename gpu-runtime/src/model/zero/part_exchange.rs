//! Exchanges of arrays that replicas hold in equal parts, in pieces of bounded size.

use crate::backend::{Backend, Params};
use crate::collective::{self, Extent, Fragment, Ranks};

/// Elements that all replicas exchange at a time at most.
pub(crate) const PIECE: usize = 1 << 20;

/// Fragments that are exchanged together.
fn pieces(arrays: &[Extent], world: usize) -> Vec<Vec<Fragment>> {
    collective::pieces(arrays, world, PIECE)
}

/// Calls of a collective for arrays of these extents.
pub(crate) fn calls(arrays: &[Extent], world: usize) -> usize {
    pieces(arrays, world).len()
}

/// Gathers all elements of the arrays in `own`, of which this replica has parts, in the backend's memory; other arrays
/// are empty.
pub(super) fn gather_params<B: Backend>(
    backend: &B,
    replicas: &Ranks,
    arrays: &[Extent],
    own: &B::Params,
) -> B::Params {
    let mut lens = vec![0; own.len()];
    arrays.iter().for_each(|of| lens[of.index] = of.len);
    if let Some(whole) = own.gather_fragments(replicas, &lens, &pieces(arrays, replicas.world())) {
        return whole;
    }
    let mut whole: Vec<Vec<f32>> = lens.into_iter().map(|len| vec![0.0; len]).collect();
    gather_parts(replicas, arrays, own, |index, first, values| {
        whole[index][first..first + values.len()].copy_from_slice(values);
    });
    backend.upload_params(whole)
}

/// Takes part in [`gather_params`] for the others.
pub(super) fn offer_params<P: Params>(replicas: &Ranks, arrays: &[Extent], own: &P) {
    if !own.offer_fragments(replicas, &pieces(arrays, replicas.world())) {
        gather_parts(replicas, arrays, own, |_, _, _| ());
    }
}

/// Passes every element of the arrays, of which `own` has this replica's parts, to `write`: index, first element,
/// elements.
fn gather_parts<P: Params>(replicas: &Ranks, arrays: &[Extent], own: &P, mut write: impl FnMut(usize, usize, &[f32])) {
    let world = replicas.world();
    for piece in pieces(arrays, world) {
        let mine = piece.iter().fold(Vec::new(), |mut mine, fragment| {
            mine.extend_from_slice(&own.host(fragment.of.index)[fragment.within(world, replicas.rank()).0]);
            mine
        });
        let len = |replica| piece.iter().map(|fragment| fragment.within(world, replica).0.len()).sum();
        let lens: Vec<usize> = (0..world).map(len).collect();
        let Some(all) = replicas.all_gather_sized(mine, &lens) else { return };
        for (replica, values) in all.iter().enumerate() {
            let mut rest = &values[..];
            for fragment in &piece {
                let (within, first) = fragment.within(world, replica);
                let part;
                (part, rest) = rest.split_at(within.len());
                write(fragment.of.index, first, part);
            }
        }
    }
}

/// Adds this replica's parts of the sums of `own` over all replicas, in their order, to `into`. A replica that passes `None` has
/// zeros.
pub(super) fn reduce_parts<P: Params>(replicas: &Ranks, arrays: &[Extent], own: Option<&P>, into: &mut P) {
    let world = replicas.world();
    let pieces = pieces(arrays, world);
    if into.add_sums_of_fragments(own, replicas, &pieces) {
        return;
    }
    for piece in pieces {
        let of = |replica| {
            piece.iter().fold(Vec::new(), |mut part, fragment| {
                let (within, first) = fragment.within(world, replica);
                match own {
                    Some(own) => part.extend_from_slice(&own.host(fragment.of.index)[first..first + within.len()]),
                    None => part.resize(part.len() + within.len(), 0.0),
                }
                part
            })
        };
        let sums = replicas.scatter_sums((0..world).map(of).collect());
        let mut rest = &sums[..];
        for fragment in &piece {
            let (within, _) = fragment.within(world, replicas.rank());
            let part;
            (part, rest) = rest.split_at(within.len());
            into.add(fragment.of.index, within.start, part);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::backend::host::HostParams;
    use crate::collective::{local_ranks, slice_of};

    fn extents(lens: &[usize]) -> Vec<Extent> {
        lens.iter().enumerate().map(|(index, len)| Extent { index, len: *len }).collect()
    }

    #[test]
    fn large_arrays_are_cut_and_small_ones_exchanged_together() {
        let found = pieces(&extents(&[PIECE + 4, 8, 0, 6]), 2);
        let of = |found: &[Fragment]| {
            found.iter().map(|fragment| (fragment.of.index, fragment.offsets.clone())).collect::<Vec<_>>()
        };
        assert_eq!(found.len(), 2);
        assert_eq!(of(&found[0]), [(0, 0..PIECE / 2)]);
        assert_eq!(of(&found[1]), [(0, PIECE / 2..PIECE / 2 + 2), (1, 0..4), (3, 0..3)]);
        assert_eq!(calls(&extents(&[0]), 2), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

        /// Holds for any lengths: gathering returns all replicas' parts, and reducing their sum in the order of
        /// replicas.
        #[test]
        fn parts_make_the_whole(
            world in 2..5_usize,
            lens in proptest::collection::vec(prop_oneof![0..7_usize, Just(PIECE + 3)], 1..4),
        ) {
            let value = |replica: usize, index: usize, at: usize| {
                ((replica * 31 + index * 7 + at * 3) % 1013) as f32 * 1.1
            };
            let arrays = extents(&lens);
            let run = |rank| {
                let replicas = Ranks::new(Arc::new(rank));
                let own = replicas.rank();
                let part = |(index, len): (usize, &usize)| slice_of(*len, world, own).map(|at| value(0, index, at)).collect();
                let mut parts = HostParams::new(lens.iter().enumerate().map(part).collect());
                let mut whole: Vec<Vec<f32>> = lens.iter().map(|len| vec![f32::NAN; *len]).collect();
                gather_parts(&replicas, &arrays, &parts, |index, first, values| {
                    whole[index][first..first + values.len()].copy_from_slice(values);
                });
                let all = |(index, len): (usize, &usize)| (0..*len).map(|at| value(own, index, at)).collect();
                let gradient = (own + 1 < world).then(|| HostParams::new(lens.iter().enumerate().map(all).collect()));
                parts.iter_mut().for_each(|part| part.fill(0.5));
                reduce_parts(&replicas, &arrays, gradient.as_ref(), &mut parts);
                replicas.check().unwrap();
                (whole, parts)
            };
            let run = &run;
            let found: Vec<_> = thread::scope(|scope| {
                let ranks = local_ranks(world, Duration::from_secs(60)).into_iter();
                let running: Vec<_> = ranks.map(|rank| scope.spawn(move || run(rank))).collect();
                running.into_iter().map(|rank| rank.join().unwrap()).collect()
            });
            for (rank, (whole, parts)) in found.iter().enumerate() {
                for (index, len) in lens.iter().enumerate() {
                    prop_assert!(whole[index].iter().enumerate().all(|(at, found)| *found == value(0, index, at)));
                    let sum = |at| (1..world - 1).fold(value(0, index, at), |sum, replica| sum + value(replica, index, at));
                    let expected: Vec<f32> = slice_of(*len, world, rank).map(|at| 0.5 + sum(at)).collect();
                    prop_assert!(parts[index] == expected, "array {} of {} elements", index, len);
                }
            }
        }
    }
}

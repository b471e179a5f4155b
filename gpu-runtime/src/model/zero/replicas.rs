//! Data parallelism: the division of work and memory among replicas of a model.
//!
//! Each replica computes the gradient of some of a request's examples, chosen by the request alone. The sums, in the
//! order of replicas, are scattered: a replica has an equal part of every array, takes the optimizer's step on it with
//! its part of the moments, and gathers the masters of the others (ZeRO stages 1 and 2, Rajbhandari et al. 2020,
//! arXiv:1910.02054). In stage 3 it keeps no other masters, and [`super::gathered`] describes how passes get them.

use std::ops::Range;

use crate::backend::{Backend, Params};
use crate::collective::{Ranks, slice_of};

/// Elements that replicas exchange at a time, unless an array has more.
const BUCKET: usize = 1 << 20;

/// The examples that each replica computes, in order, given the rows of all examples of a request: the longest ones first, each
/// to the replica with the fewest rows.
pub(crate) fn divide(rows: impl IntoIterator<Item = usize>, replicas: usize) -> Vec<Vec<usize>> {
    let mut examples: Vec<(usize, usize)> = rows.into_iter().enumerate().collect();
    examples.sort_by_key(|(example, rows)| (std::cmp::Reverse(*rows), *example));
    let mut parts: Vec<(usize, Vec<usize>)> = vec![(0, Vec::new()); replicas.max(1)];
    for (example, rows) in examples {
        // The first one of those that have the fewest.
        if let Some((held, part)) = parts.iter_mut().min_by_key(|(held, _)| *held) {
            *held += rows;
            part.push(example);
        }
    }
    let mut parts: Vec<Vec<usize>> = parts.into_iter().map(|(_, part)| part).collect();
    parts.iter_mut().for_each(|part| part.sort_unstable());
    parts
}

/// Elements of the largest part of arrays of these lengths.
pub(crate) fn part_elements(lens: impl IntoIterator<Item = usize>, replicas: usize) -> usize {
    lens.into_iter().map(|len| slice_of(len, replicas, 0).len()).sum()
}

/// Lengths of a replica's parts of arrays of these lengths.
pub(crate) fn part_lens(lens: &[usize], replicas: &Ranks) -> Vec<usize> {
    lens.iter().map(|len| slice_of(*len, replicas.world(), replicas.rank()).len()).collect()
}

/// A replica's parts of arrays that all of them have.
pub(crate) fn part_of<B: Backend>(backend: &B, replicas: &Ranks, whole: &B::Params) -> B::Params {
    if let Some(part) = whole.part(replicas) {
        return part;
    }
    backend.upload_params((0..whole.len()).map(|index| own_part(replicas, &whole.host(index))).collect())
}

/// A replica's part of an array.
pub(crate) fn own_part(replicas: &Ranks, values: &[f32]) -> Vec<f32> {
    values[slice_of(values.len(), replicas.world(), replicas.rank())].to_vec()
}

/// A replica's parts of the sums of `own` over all replicas.
pub(crate) fn scatter_sums<B: Backend>(backend: &B, replicas: &Ranks, own: &B::Params) -> B::Params {
    if let Some(sums) = own.sums_of_parts(replicas) {
        return sums;
    }
    let lens = own.lens();
    let mut sums = Vec::with_capacity(lens.len());
    for bucket in buckets(&lens) {
        let of = |rank| {
            let slices = bucket.clone().map(|index| (index, slice_of(lens[index], replicas.world(), rank)));
            slices.fold(Vec::new(), |mut part, (index, slice)| {
                part.extend_from_slice(&own.host(index)[slice]);
                part
            })
        };
        let sum = replicas.scatter_sums((0..replicas.world()).map(of).collect());
        let mut rest = &sum[..];
        for index in bucket {
            let part;
            (part, rest) = rest.split_at(slice_of(lens[index], replicas.world(), replicas.rank()).len());
            sums.push(part.to_vec());
        }
    }
    backend.upload_params(sums)
}

/// Overwrites all elements of `whole` by what the replicas have of them.
pub(crate) fn gather_into<P: Params>(replicas: &Ranks, own: &P, whole: &mut P) {
    if whole.gather_parts(own, replicas) {
        return;
    }
    let lens = whole.lens();
    for bucket in buckets(&lens) {
        let mine = bucket.clone().flat_map(|index| own.host(index).into_owned()).collect();
        let Some(all) = replicas.all_gather(mine) else { return };
        for (rank, part) in all.iter().enumerate() {
            let mut rest = &part[..];
            for index in bucket.clone() {
                let slice = slice_of(lens[index], replicas.world(), rank);
                let values;
                (values, rest) = rest.split_at(slice.len().min(rest.len()));
                whole.write(index, slice.start, values);
            }
        }
    }
}

/// Gathers arrays of these lengths from all replicas' parts on the first replica; all call it. `None` on the others,
/// and after a failure.
pub(crate) fn gather<P: Params>(replicas: &Ranks, own: &P, lens: &[usize]) -> Option<Vec<Vec<f32>>> {
    let mut whole = Vec::with_capacity(lens.len());
    for bucket in buckets(lens) {
        let mine = bucket.clone().flat_map(|index| own.host(index).into_owned()).collect();
        let Some(all) = replicas.gather(mine) else { continue };
        let mut rest: Vec<&[f32]> = all.iter().map(|part| &part[..]).collect();
        for index in bucket {
            let mut values = Vec::with_capacity(lens[index]);
            for (rank, rest) in rest.iter_mut().enumerate() {
                let part;
                (part, *rest) = rest.split_at(slice_of(lens[index], replicas.world(), rank).len().min(rest.len()));
                values.extend_from_slice(part);
            }
            whole.push(values);
        }
    }
    (whole.len() == lens.len()).then_some(whole)
}

/// Consecutive arrays that are exchanged together.
fn buckets(lens: &[usize]) -> Vec<Range<usize>> {
    let mut buckets = Vec::new();
    let (mut first, mut held) = (0, 0);
    for (index, len) in lens.iter().enumerate() {
        if held > 0 && held + len > BUCKET {
            buckets.push(first..index);
            (first, held) = (index, 0);
        }
        held += len;
    }
    if first < lens.len() {
        buckets.push(first..lens.len());
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_divided_by_rows() {
        assert_eq!(divide([5, 5, 5, 5], 2), [vec![0, 2], vec![1, 3]]);
        assert_eq!(divide([1, 9, 2, 3, 3], 2), [vec![1], vec![0, 2, 3, 4]]);
        assert_eq!(divide([3], 3), [vec![0], vec![], vec![]]);
        assert_eq!(divide([2, 1, 2], 1), [vec![0, 1, 2]]);
    }

    #[test]
    fn buckets_hold_consecutive_arrays() {
        assert_eq!(buckets(&[1, 2, BUCKET - 3, 1, BUCKET + 5, 0, 7]), [0..3, 3..4, 4..5, 5..7]);
        assert!(buckets(&[]).is_empty());
    }
}

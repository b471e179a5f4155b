//! Operations of every transport, composed of one or two exchanges.

use std::ops::Range;
use std::sync::Arc;

use super::call::{Call, CollectiveError, Operation};
use super::payload::{self, Payload, bytes, floats};

/// Elements up to which an all-reduce sends whole arrays in one exchange. Larger ones are reduced in slices and gathered,
/// which moves `2 (w - 1) / w` of an array per rank instead of `w - 1`; between two ranks that is the same, so that one exchange
/// is better. The bits are the same.
pub(super) const ONE_EXCHANGE: usize = 4_096;

/// One of the ranks that compute a model together.
pub trait Collective: Send + Sync {
    /// Returns the number of this rank, from 0.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn world(&self) -> usize;

    /// Sends `parts[i]` to rank `members[i]`, and returns what each member sent to this one, in their order. Members are in
    /// ascending order, this rank is one of them, and all make the same `call` with the same members.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    fn exchange_among(
        &self,
        members: &[usize],
        call: Call,
        parts: Vec<Payload>,
    ) -> Result<Vec<Payload>, CollectiveError>;

    /// Makes every further call of any rank fail, including calls that others wait in, because this rank cannot
    /// continue.
    fn fail(&self, _failure: CollectiveError) {}

    /// Returns the reason why further calls will fail, as far as it is known without a call.
    fn fault(&self) -> Option<CollectiveError> {
        None
    }

    /// Exchanges parts among all ranks, like [`Collective::exchange_among`].
    ///
    /// # Errors
    /// See [`CollectiveError`].
    fn exchange(&self, call: Call, parts: Vec<Payload>) -> Result<Vec<Payload>, CollectiveError> {
        let all: Vec<usize> = (0..self.world()).collect();
        self.exchange_among(&all, call, parts)
    }

    /// Replaces `values` with their sum over all ranks.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    fn all_reduce(&self, values: &mut [f32]) -> Result<(), CollectiveError> {
        let call = Call::new(Operation::AllReduce, &[values.len()]);
        if values.len() <= ONE_EXCHANGE || self.world() == 2 {
            let mine = Payload::from(values.to_vec());
            let all = self.exchange(call.clone(), vec![mine; self.world()])?;
            return sum_into(&call, &all, values);
        }
        let slices: Vec<_> = (0..self.world()).map(|rank| slice_of(values.len(), self.world(), rank)).collect();
        // Its own slice is summed from where it is.
        let sent = |rank: usize| if rank == self.rank() { Vec::new() } else { values[slices[rank].clone()].to_vec() };
        let received =
            self.exchange(call.clone(), (0..self.world()).map(|rank| Payload::from(sent(rank))).collect())?;
        let own = &values[slices[self.rank()].clone()];
        let sums = sum_with(&call, &received, self.rank(), own)?;
        let all = self.exchange(call.clone(), vec![Payload::from(sums); self.world()])?;
        for (rank, (slice, part)) in slices.into_iter().zip(&all).enumerate() {
            values[slice.clone()].copy_from_slice(floats(&call, rank, part, slice.len())?);
        }
        Ok(())
    }

    /// Returns the sum over all ranks of this rank's slice of `values`: slices are [`slice_of`] the length, in the
    /// order of ranks.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    fn reduce_scatter(&self, values: &[f32]) -> Result<Vec<f32>, CollectiveError> {
        let slice = |rank| values[slice_of(values.len(), self.world(), rank)].to_vec();
        self.scatter_sums((0..self.world()).map(slice).collect())
    }

    /// Returns the sum over all ranks of the parts that they pass for this one: `parts[r]` is for rank `r`, and has the
    /// same length on all.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    fn scatter_sums(&self, parts: Vec<Vec<f32>>) -> Result<Vec<f32>, CollectiveError> {
        let call = Call::new(Operation::ReduceScatter, &[parts.iter().map(Vec::len).sum()]);
        let mut sums = vec![0.0; parts[self.rank()].len()];
        let received = self.exchange(call.clone(), parts.into_iter().map(Payload::from).collect())?;
        sum_into(&call, &received, &mut sums)?;
        Ok(sums)
    }

    /// Returns the arrays of all ranks, which may differ in length, in the order of ranks.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    fn all_gather(&self, mine: Vec<f32>) -> Result<Vec<Arc<Vec<f32>>>, CollectiveError> {
        let call = Call::new(Operation::AllGather, &[]);
        let all = self.exchange(call.clone(), vec![Payload::from(mine); self.world()])?;
        all.iter().enumerate().map(|(rank, part)| payload::shared_floats(&call, rank, part)).collect()
    }

    /// Sends `parts[r]`, whole rows of `width` elements, to rank `r`, and returns what each rank sent to this one.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    fn all_to_all(&self, width: usize, parts: Vec<Vec<f32>>) -> Result<Vec<Arc<Vec<f32>>>, CollectiveError> {
        let call = Call::new(Operation::AllToAll, &[width]);
        let received = self.exchange(call.clone(), parts.into_iter().map(Payload::from).collect())?;
        received.iter().enumerate().map(|(rank, part)| payload::shared_rows(&call, rank, part, width)).collect()
    }

    /// Returns the bytes of rank `root`; the other ranks' `message` is ignored.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    fn broadcast(&self, root: usize, message: Vec<u8>) -> Result<Arc<Vec<u8>>, CollectiveError> {
        let call = Call::new(Operation::Broadcast { root }, &[]);
        let sent = if self.rank() == root { Payload::from(message) } else { Payload::from(Vec::<u8>::new()) };
        let received = self.exchange(call.clone(), vec![sent; self.world()])?;
        bytes(&call, root, received.get(root))
    }

    /// Returns when every rank has called it.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    fn barrier(&self) -> Result<(), CollectiveError> {
        let nothing = Payload::from(Vec::<u8>::new());
        self.exchange(Call::new(Operation::Barrier, &[]), vec![nothing; self.world()]).map(drop)
    }
}

/// Returns the part of `len` elements that belongs to a rank. Parts are equal, except that the first ones are longer by
/// one if `len` is not divisible.
pub fn slice_of(len: usize, world: usize, rank: usize) -> Range<usize> {
    let (each, more) = (len / world, len % world);
    let start = each * rank + rank.min(more);
    start..start + each + usize::from(rank < more)
}

/// `sums = parts[0] + parts[1] + …`, element by element in this order.
fn sum_into(call: &Call, parts: &[Payload], sums: &mut [f32]) -> Result<(), CollectiveError> {
    let terms = parts.iter().enumerate().map(|(rank, part)| floats(call, rank, part, sums.len()));
    match &terms.collect::<Result<Vec<_>, _>>()?[..] {
        [] => {}
        [only] => sums.copy_from_slice(only),
        [first, second, others @ ..] => {
            // In one pass over the sums.
            let pairs = first.iter().zip(*second);
            sums.iter_mut().zip(pairs).for_each(|(sum, (first, second))| *sum = first + second);
            others.iter().for_each(|part| add_part(false, part, sums));
        }
    }
    Ok(())
}

/// `parts[0] + parts[1] + …`, element by element in this order, with a rank's own elements in the place of its part.
fn sum_with(call: &Call, parts: &[Payload], own: usize, elements: &[f32]) -> Result<Vec<f32>, CollectiveError> {
    let mut sums: Vec<f32> = Vec::new();
    for (rank, part) in parts.iter().enumerate() {
        let term = if rank == own { elements } else { floats(call, rank, part, elements.len())? };
        match rank {
            0 => sums.extend_from_slice(term),
            _ => add_part(false, term, &mut sums),
        }
    }
    Ok(sums)
}

/// Begins `sums` with the first part, and adds the others to it.
pub(super) fn add_part(is_first: bool, part: &[f32], sums: &mut [f32]) {
    if is_first {
        sums.copy_from_slice(part);
    } else {
        sums.iter_mut().zip(part).for_each(|(sum, term)| *sum += term);
    }
}

//! The ranks of a model, in the form that its passes use.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::call::{Call, CollectiveError, Operation};
use super::meter::{CollectiveUse, Metered};
use super::payload::{Payload, bytes, floats, shared_floats};
use super::rank::{Collective, add_part};
use super::single::Single;
use super::subgroup::Subgroup;
use super::volume::CollectiveKind;

/// Shares a model's collectives among its passes. Errors are sticky, like those of devices: a pass whose collective
/// fails continues with the data that it has, and callers must check [`Ranks::check`] before they use a result.
#[derive(Clone)]
pub struct Ranks {
    collective: Arc<dyn Collective>,
    /// All ranks of the worker; these may be a part of them.
    whole: Arc<Metered>,
    /// First failure among all ranks.
    failure: Arc<OnceLock<CollectiveError>>,
    /// Transport that a backend uses among these ranks instead of the host's.
    device: Option<Arc<dyn Any + Send + Sync>>,
}

impl fmt::Debug for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ranks").field("rank", &self.rank()).field("world", &self.world()).finish_non_exhaustive()
    }
}

impl Default for Ranks {
    fn default() -> Self {
        Self::new(Arc::new(Single))
    }
}

impl Ranks {
    /// Returns the ranks that `collective` connects.
    pub fn new(collective: Arc<dyn Collective>) -> Self {
        let whole = Arc::new(Metered::new(collective));
        Self { collective: Arc::<Metered>::clone(&whole), whole, failure: Arc::default(), device: None }
    }

    /// Returns a group of these ranks, in ascending order and with this one, numbered from 0. A failure in the group is
    /// a failure of all ranks.
    #[must_use]
    pub fn among(&self, members: Vec<usize>) -> Self {
        let collective: Arc<dyn Collective> = match members.len() {
            all if all == self.world() => return self.clone(),
            1 => Arc::new(Single),
            _ => Arc::new(Subgroup::new(Arc::clone(&self.collective), members)),
        };
        Self { collective, device: None, ..self.clone() }
    }

    /// Returns the same ranks with a backend's transport for exchanges among them; see [`Ranks::device`].
    #[must_use]
    pub fn with_device(self, device: Arc<dyn Any + Send + Sync>) -> Self {
        Self { device: Some(device), ..self }
    }

    /// Returns the transport given to [`Ranks::with_device`], if it is a `T`.
    pub fn device<T: Any>(&self) -> Option<&T> {
        self.device.as_deref()?.downcast_ref()
    }

    /// Returns the number of this rank.
    pub fn rank(&self) -> usize {
        self.collective.rank()
    }

    /// Returns the number of ranks.
    pub fn world(&self) -> usize {
        self.collective.world()
    }

    /// Returns this rank's use of collectives, in all groups.
    pub fn used(&self) -> CollectiveUse {
        self.whole.read()
    }

    /// Counts bytes that were sent to other ranks, and not through the host.
    pub fn count(&self, kind: CollectiveKind, bytes: usize) {
        self.whole.count(kind, bytes);
    }

    /// Returns whether this rank is the only one.
    pub fn is_single(&self) -> bool {
        self.world() == 1
    }

    /// Replaces `values` by their sum over all ranks, in the order of ranks; on failure they are unchanged.
    pub fn all_reduce(&self, values: &mut [f32]) {
        self.recorded(|| (), |collective| collective.all_reduce(values));
    }

    /// Replaces `values` by their sum over the ranks of `group`, in the order of ranks. All ranks call it, each with the group
    /// that it belongs to.
    pub fn reduce_within(&self, group: Range<usize>, values: &mut [f32]) {
        if group == (0..self.world()) {
            return self.all_reduce(values);
        }
        self.recorded(
            || (),
            |collective| {
                let all = collective.all_gather(values.to_vec())?;
                for (at, part) in all[group].iter().enumerate() {
                    add_part(at == 0, part, values);
                }
                Ok(())
            },
        );
    }

    /// Returns the sum over all ranks, in their order, of the part that each passes for this rank: `parts[r]` is for
    /// rank `r`, and has the same length on all ranks. Returns this rank's own part after a failure.
    pub fn scatter_sums(&self, mut parts: Vec<Vec<f32>>) -> Vec<f32> {
        if self.is_single() {
            return parts.pop().unwrap_or_default();
        }
        let own = parts[self.rank()].clone();
        self.recorded(|| own, |collective| collective.scatter_sums(parts))
    }

    /// Returns the arrays of all ranks, which may differ in length, in the order of ranks. `None` after a failure.
    pub fn all_gather(&self, mine: Vec<f32>) -> Option<Vec<Arc<Vec<f32>>>> {
        if self.is_single() {
            return Some(vec![Arc::new(mine)]);
        }
        self.recorded(|| None, |collective| collective.all_gather(mine).map(Some))
    }

    /// Returns the sum of `value` over all ranks, in their order.
    pub fn sum(&self, value: f64) -> f64 {
        let add = |collective: &dyn Collective| {
            let all = all_bytes(collective, value.to_le_bytes().to_vec())?;
            // Every rank sent eight bytes.
            Ok(all.iter().map(|bytes| bytes.as_slice().try_into().map_or(f64::NAN, f64::from_le_bytes)).sum())
        };
        self.recorded(|| value, add)
    }

    /// Returns the arrays of all ranks, of `lens` elements, in the order of ranks. `None` after a failure.
    pub fn all_gather_sized(&self, mine: Vec<f32>, lens: &[usize]) -> Option<Vec<Arc<Vec<f32>>>> {
        let gather = |collective: &dyn Collective| {
            let call = Call::new(Operation::AllGather, lens);
            let all = collective.exchange(call.clone(), vec![Payload::from(mine); collective.world()])?;
            let arrays = all.iter().zip(lens).enumerate().map(|(rank, (part, len))| {
                floats(&call, rank, part, *len)?;
                shared_floats(&call, rank, part)
            });
            arrays.collect::<Result<Vec<_>, _>>().map(Some)
        };
        self.recorded(|| None, gather)
    }

    /// Gathers the arrays of all ranks on rank 0, in the order of ranks; their lengths may differ. `None` on the other
    /// ranks, and after a failure.
    pub fn gather(&self, mine: Vec<f32>) -> Option<Vec<Arc<Vec<f32>>>> {
        let gather = |collective: &dyn Collective| {
            let call = Call::new(Operation::Gather { root: 0 }, &[]);
            let nothing = Payload::from(Vec::<f32>::new());
            let mut parts = vec![nothing; collective.world()];
            parts[0] = Payload::from(mine);
            let all = collective.exchange(call.clone(), parts)?;
            let arrays = all.iter().enumerate().map(|(rank, part)| shared_floats(&call, rank, part));
            arrays.collect::<Result<Vec<_>, _>>().map(Some)
        };
        self.recorded(|| None, gather).filter(|_| self.rank() == 0)
    }

    /// Returns the bytes of every rank, in the order of ranks; after a failure only those of this rank.
    pub fn all_bytes(&self, mine: Vec<u8>) -> Vec<Arc<Vec<u8>>> {
        let own = mine.clone();
        self.recorded(|| vec![Arc::new(own)], |collective| all_bytes(collective, mine))
    }

    /// Returns the value that each rank passes, in the order of ranks. Values travel as MessagePack with names, which
    /// keeps every bit of numbers. After a failure, such as bytes of another version, the result contains only `mine`.
    pub fn all_of<T: Serialize + DeserializeOwned>(&self, mine: T) -> Vec<T> {
        if self.is_single() {
            return vec![mine];
        }
        let read = |collective: &dyn Collective| {
            let malformed = |rank, found: String| {
                let call = Call::new(Operation::AllGather, &[]);
                CollectiveError::Malformed { rank, call, found, expected: "a message of this version".to_owned() }
            };
            let own = rmp_serde::to_vec_named(&mine).map_err(|error| malformed(self.rank(), error.to_string()))?;
            let all = all_bytes(collective, own)?;
            let others = all.iter().enumerate().filter(|(rank, _)| *rank != self.rank());
            let others = others
                .map(|(rank, bytes)| rmp_serde::from_slice(bytes).map_err(|error| malformed(rank, error.to_string())));
            others.collect::<Result<Vec<T>, _>>()
        };
        let mut all = self.recorded(Vec::new, read);
        all.insert(self.rank().min(all.len()), mine);
        all
    }

    /// Returns the decision of rank 0; `mine` is ignored on other ranks, except after a failure.
    pub fn decide(&self, mine: u8) -> u8 {
        let decide = |collective: &dyn Collective| {
            let decision = collective.broadcast(0, vec![mine])?;
            Ok(decision.first().copied().unwrap_or(mine))
        };
        self.recorded(|| mine, decide)
    }

    /// Waits for all ranks, which must be in the same `state`: a rank in another state fails the call with an error
    /// that names both states.
    pub fn meet(&self, state: &[usize]) {
        let meet = |collective: &dyn Collective| {
            let nothing = Payload::from(Vec::<u8>::new());
            let parts = vec![nothing; collective.world()];
            collective.exchange(Call::new(Operation::Barrier, state), parts).map(drop)
        };
        self.recorded(|| (), meet);
    }

    /// Returns the first error of a collective since the ranks were connected.
    ///
    /// # Errors
    /// That one.
    pub fn check(&self) -> Result<(), CollectiveError> {
        self.failure.get().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// Ends all exchanges of all ranks, because this rank cannot continue.
    pub fn fail(&self, reason: &str) {
        let failure = CollectiveError::Failed { rank: self.whole.rank(), reason: reason.to_owned() };
        self.whole.fail(failure.clone());
        // The first one is the cause.
        let _ = self.failure.set(failure);
    }

    /// Returns the reason why exchanges fail, or will fail as far as this is known without an exchange.
    ///
    /// # Errors
    /// That.
    pub fn check_others(&self) -> Result<(), CollectiveError> {
        self.check()?;
        self.whole.fault().map_or(Ok(()), Err)
    }

    /// Makes a call, unless this is the only rank or a call failed before: then, and if it fails, the result is `own`.
    fn recorded<T>(
        &self,
        own: impl FnOnce() -> T,
        call: impl FnOnce(&dyn Collective) -> Result<T, CollectiveError>,
    ) -> T {
        if self.is_single() || self.failure.get().is_some() {
            return own();
        }
        call(&*self.collective).unwrap_or_else(|failure| {
            tracing::error!(rank = self.rank(), world = self.world(), error = %failure, "a collective failed");
            // The first one is the cause.
            let _ = self.failure.set(failure);
            own()
        })
    }
}

fn all_bytes(collective: &dyn Collective, mine: Vec<u8>) -> Result<Vec<Arc<Vec<u8>>>, CollectiveError> {
    let call = Call::new(Operation::AllGather, &[]);
    let all = collective.exchange(call.clone(), vec![Payload::from(mine); collective.world()])?;
    all.iter().enumerate().map(|(rank, part)| bytes(&call, rank, Some(part))).collect()
}

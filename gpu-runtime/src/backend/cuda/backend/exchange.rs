//! Exchanges between ranks that have a GPU each: on the devices if [`connect`] has made a communicator of them, through
//! the host otherwise.

use std::ops::Range;
use std::sync::Arc;

use super::params::CudaParams;
use super::{Cuda, done};
use crate::backend::cuda::device::error::Result;
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::nccl::{Nccl, NcclId};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::ranks::DeviceRanks;
use crate::collective::{CollectiveKind, Ranks, slice_of};

/// Ranks that exchange by NCCL.
pub(super) struct DeviceGroup {
    // The communicator ends before its device does.
    pub(super) ranks: Arc<DeviceRanks>,
    pub(super) device: Arc<CudaDevice>,
}

/// The same ranks with a communicator. All ranks call it, and it succeeds or fails on all.
pub(super) fn connect(cuda: &Cuda, ranks: Ranks) -> std::result::Result<Ranks, String> {
    if ranks.is_single() || ranks.device::<DeviceGroup>().is_some() {
        return Ok(ranks);
    }
    let nccl = Nccl::open();
    let own = nccl.as_ref().map_err(ToString::to_string).and_then(|nccl| match ranks.rank() {
        0 => nccl.new_id().map(|id| id.0.to_vec()).map_err(|error| error.to_string()),
        _ => Ok(Vec::new()),
    });
    // NCCL would wait for a rank that has failed.
    let all = agreed(&ranks, own)?;
    let id = all.into_iter().next().and_then(|id| <[u8; 128]>::try_from(id).ok()).map(NcclId);
    let (Some(id), Ok(nccl)) = (id, nccl) else { return Err("rank 0 sent no id of NCCL".to_owned()) };
    let device = Arc::clone(&cuda.device);
    let joined =
        DeviceRanks::join(&device, &nccl, id, ranks.rank(), ranks.world(), Some(ranks.clone()), cuda.rank_limit);
    agreed(&ranks, joined.as_ref().map(|_| ()).map_err(ToString::to_string))?;
    let joined = joined.map_err(|error| error.to_string())?;
    Ok(ranks.with_device(Arc::new(DeviceGroup { ranks: joined, device })))
}

/// The values of all ranks, or the first failing rank's reason.
fn agreed<T>(ranks: &Ranks, own: std::result::Result<T, String>) -> std::result::Result<Vec<T>, String>
where
    T: serde::Serialize + serde::de::DeserializeOwned,
{
    let all = ranks.all_of(own);
    ranks.check().map_err(|error| error.to_string())?;
    let named = |(rank, own): (usize, std::result::Result<T, String>)| {
        own.map_err(|reason| format!("rank {rank} of {}: {reason}", ranks.world()))
    };
    all.into_iter().enumerate().map(named).collect()
}

pub(super) fn group(ranks: &Ranks) -> Option<&DeviceGroup> {
    ranks.device()
}

pub(super) fn count(ranks: &Ranks, kind: CollectiveKind, elements: usize) {
    ranks.count(kind, kind.sent(elements, ranks.rank(), ranks.world()) * size_of::<f32>());
}

/// Replaces `values` by their sum over the ranks of `within`, in the order of ranks: all of them, or some that this one is of.
pub(super) fn reduce(ranks: &Ranks, within: Range<usize>, values: &mut Slice<f32>) {
    if ranks.is_single() {
        return;
    }
    let Some(DeviceGroup { ranks: joined, device }) = group(ranks) else {
        let mut on_host = done(values.to_host());
        ranks.reduce_within(within, &mut on_host);
        return done(values.write(0, &on_host));
    };
    let is_whole = within == (0..ranks.world());
    count(ranks, if is_whole { CollectiveKind::AllReduce } else { CollectiveKind::AllGather }, values.len());
    done(joined.reduce_within(device, within, values));
}

/// Gathers the slices of all ranks, `lengths` elements each. `None` after a failure.
pub(super) fn gather(
    device: &CudaDevice,
    ranks: &Ranks,
    own: Slice<f32>,
    lengths: &[usize],
) -> Option<Vec<Slice<f32>>> {
    if ranks.is_single() {
        return Some(vec![own]);
    }
    if let Some(DeviceGroup { ranks: joined, device }) = group(ranks) {
        count(ranks, CollectiveKind::AllGather, own.len());
        return Some(done(joined.all_gather_sized(device, &own, lengths)));
    }
    let parts = ranks.all_gather_sized(done(own.to_host()), lengths)?;
    Some(done(parts.iter().map(|part| device.upload(part)).collect()))
}

/// Elements that follow each other in one array, which those of `parts` are copied to one after the other.
pub(super) fn concat<'a>(
    device: &CudaDevice,
    parts: impl Iterator<Item = (&'a Slice<f32>, Range<usize>)> + Clone,
) -> Result<Slice<f32>> {
    let mut all = device.uninitialised(parts.clone().map(|(_, range)| range.len()).sum())?;
    let mut first = 0;
    for (part, range) in parts {
        let len = range.len();
        all.copy_from(first, part, range)?;
        first += len;
    }
    Ok(all)
}

impl CudaParams {
    /// Implementation of [`Params::part`](crate::backend::Params::part) on the device.
    pub(super) fn part_of(&self, ranks: &Ranks) -> Self {
        let part = |values: &Slice<f32>| values.copy(slice_of(values.len(), ranks.world(), ranks.rank()));
        Self(done(self.0.iter().map(part).collect()))
    }
}

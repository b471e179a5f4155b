//! Ranks that have a GPU each and exchange slices by NCCL. Sums are in the order of ranks, like those of
//! [`crate::collective`]: NCCL transfers the elements, and a kernel adds them.
#![allow(unsafe_code, reason = "NCCL gets addresses of slices, whose lengths are checked here")]

use std::ffi::c_int;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::backend::cuda::device::error::{CudaError, Extents, Result};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::nccl::{Communicator, Message, Nccl, NcclId};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::device::peers::Peers;
use crate::backend::cuda::kernels::Argument;
use crate::collective::{DEVICE_PIECE, Ranks, slice_of};

/// Elements up to which an all-reduce gathers whole arrays; larger ones are reduced in slices and gathered.
const ONE_EXCHANGE: usize = 4_096;

/// How long the host may take to notice which rank made a collective fail.
const NAMED: Duration = Duration::from_secs(1);

/// This rank among those of a communicator. All ranks call the same functions with the same extents in the same order,
/// on the device with which they joined. Collectives are work on its stream; waits for that work return their errors,
/// which are final: the device is lost then, and the ranks learn of it.
pub(crate) struct DeviceRanks {
    nccl: Arc<Nccl>,
    communicator: Communicator,
    rank: usize,
    world: usize,
    ordinal: i32,
    failed: AtomicBool,
    /// How long a wait for the device lasts at most.
    limit: Duration,
    /// Collective that was started last.
    last: Mutex<&'static str>,
    /// The same ranks on the host, where the end of one of them is noticed.
    host: Option<Ranks>,
}

// SAFETY: NCCL's functions may be called by any thread; the device's context is made current before each.
unsafe impl Send for DeviceRanks {}
// SAFETY: calls of one communicator must not overlap, which would be calls in an unknown order: a bug of the caller, as such calls of
// ops on one stream are.
unsafe impl Sync for DeviceRanks {}

impl DeviceRanks {
    /// Joins the communicator of an id, which one rank has made and sent to the others. Waits for all ranks. `host`
    /// connects the same ranks. A wait for the device that lasts longer than `limit` is an error: a rank is missing.
    pub(crate) fn join(
        device: &CudaDevice,
        nccl: &Arc<Nccl>,
        id: NcclId,
        rank: usize,
        world: usize,
        host: Option<Ranks>,
        limit: Duration,
    ) -> Result<Arc<Self>> {
        let extents = Extents("join ranks");
        extents.below("the rank", rank, world)?;
        let [number, count] = [narrow(extents, rank)?, narrow(extents, world)?];
        device.queue().bind()?;
        let communicator = nccl.join(id, number, count)?;
        // All ranks of the process have their devices open now, and none of them has started a collective.
        device.queue().share_memory().inspect_err(|_| nccl.leave(communicator))?;
        let (nccl, ordinal, last) = (nccl.clone(), device.ordinal(), Mutex::new("ncclCommInitRank"));
        let joined =
            Self { nccl, communicator, rank, world, ordinal, failed: AtomicBool::new(false), limit, last, host };
        let joined = Arc::new(joined);
        let peers: Arc<dyn Peers> = joined.clone();
        device.queue().join(Arc::downgrade(&peers));
        Ok(joined)
    }

    /// The number of this rank.
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// How many ranks there are.
    pub(crate) fn world(&self) -> usize {
        self.world
    }

    /// Starts a collective on the device's stream; an error is final.
    fn start(&self, device: &CudaDevice, extents: Extents, call: impl FnOnce() -> Result) -> Result {
        let own = device.ordinal() == self.ordinal;
        extents.check(own, "the device", device.ordinal() as usize, || self.ordinal.to_string())?;
        if self.failed.load(Ordering::Relaxed) {
            let message = "an earlier collective failed".to_owned();
            return Err(CudaError::Collective { call: extents.0, message });
        }
        device.queue().bind()?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = extents.0;
        call().map_err(|error| {
            self.failed.store(true, Ordering::Relaxed);
            let error = self.describe(error);
            device.queue().lose(&error);
            error
        })
    }

    /// The elements of all ranks, which have as many each, in the order of ranks.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "no pass needs it yet; tests compare the collective with the other transports")
    )]
    pub(crate) fn all_gather(&self, device: &CudaDevice, own: &Slice<f32>) -> Result<Slice<f32>> {
        self.all_gather_range(device, own, 0..own.len())
    }

    /// Like [`Self::all_gather`], but for a range of the elements.
    fn all_gather_range(&self, device: &CudaDevice, own: &Slice<f32>, range: Range<usize>) -> Result<Slice<f32>> {
        let to = device.uninitialised::<f32>(self.world * range.len())?;
        if range.is_empty() {
            return Ok(to);
        }
        let (from, at, count) = (own.address_of(range.clone())?, to.address(), range.len());
        // SAFETY: both slices have that many elements, and outlive the collective in the stream's order.
        let call = || unsafe { self.nccl.all_gather(from, at, count, self.communicator, device.queue().stream()) };
        self.start(device, Extents("all_gather"), call)?;
        Ok(to)
    }

    /// Replaces the elements of all ranks by those of rank `root`.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "no pass needs it yet; tests compare the collective with the other transports")
    )]
    pub(crate) fn broadcast(&self, device: &CudaDevice, root: usize, values: &mut Slice<f32>) -> Result {
        let extents = Extents("broadcast");
        extents.below("the root", root, self.world)?;
        if values.is_empty() {
            return Ok(());
        }
        let (at, count, root) = (values.address(), values.len(), narrow(extents, root)?);
        // SAFETY: the slice has that many elements, and outlives the collective in the stream's order.
        let call = || unsafe { self.nccl.broadcast(at, count, root, self.communicator, device.queue().stream()) };
        self.start(device, extents, call)
    }

    /// Sends `parts[r]` to rank `r`, and returns what each rank sends to this one: `lengths[r]` elements of rank `r`.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "no pass needs it yet; tests compare the collective with the other transports")
    )]
    pub(crate) fn all_to_all(
        &self,
        device: &CudaDevice,
        parts: &[Slice<f32>],
        lengths: &[usize],
    ) -> Result<Vec<Slice<f32>>> {
        let extents = Extents("all_to_all");
        extents.equal("the parts", parts.len(), self.world)?;
        extents.equal("the lengths", lengths.len(), self.world)?;
        let received = lengths.iter().map(|length| device.uninitialised(*length)).collect::<Result<Vec<_>>>()?;
        let messages = |slices: &[Slice<f32>]| -> Vec<Message> {
            slices.iter().enumerate().map(|(peer, slice)| (slice.address(), slice.len(), peer)).collect()
        };
        self.exchange(device, extents, &messages(parts), &messages(&received))?;
        Ok(received)
    }

    /// Starts messages; those without an element are left out.
    fn exchange(&self, device: &CudaDevice, extents: Extents, sent: &[Message], received: &[Message]) -> Result {
        let some = |messages: &[Message]| -> Vec<Message> {
            messages.iter().copied().filter(|(_, count, _)| *count > 0).collect()
        };
        let (sent, received, stream) = (some(sent), some(received), device.queue().stream());
        // SAFETY: messages are within slices, which outlive the collective in the stream's order.
        self.start(device, extents, || unsafe { self.nccl.exchange(&sent, &received, self.communicator, stream) })
    }

    /// Replaces `values` by their sum over all ranks, in the order of ranks: the same bits on all of them, and those of
    /// [`Ranks::all_reduce`](crate::collective::Ranks::all_reduce).
    pub(crate) fn all_reduce(&self, device: &CudaDevice, values: &mut Slice<f32>) -> Result {
        if self.world == 1 {
            return Ok(());
        }
        cut(values.len(), DEVICE_PIECE).try_for_each(|range| self.reduce_range(device, values, range))
    }

    /// Like [`Self::all_reduce`], but for a range of the elements.
    fn reduce_range(&self, device: &CudaDevice, values: &mut Slice<f32>, range: Range<usize>) -> Result {
        if range.len() <= ONE_EXCHANGE || self.world == 2 {
            let parts = self.all_gather_range(device, values, range.clone())?;
            return self.sum(device, parts.address(), self.world, values.address_of(range.clone())?, range.len());
        }
        let extents = Extents("all_reduce");
        let mut places = Vec::with_capacity(self.world);
        for peer in 0..self.world {
            let slice = slice_of(range.len(), self.world, peer);
            places.push((values.address_of(range.start + slice.start..range.start + slice.end)?, slice.len(), peer));
        }
        let (own, count, _) = places.get(self.rank).copied().unwrap_or_default();
        let parts = device.uninitialised::<f32>(self.world * count)?;
        let mut received = Vec::with_capacity(self.world);
        for peer in 0..self.world {
            received.push((parts.address_of(peer * count..(peer + 1) * count)?, count, peer));
        }
        self.exchange(device, extents, &places, &received)?;
        self.sum(device, parts.address(), self.world, own, count)?;
        // Its own sums to all others, and theirs to their places.
        let others = |place: &Message| place.2 != self.rank;
        let sent: Vec<Message> = (0..self.world).map(|peer| (own, count, peer)).filter(others).collect();
        let received: Vec<Message> = places.into_iter().filter(others).collect();
        self.exchange(device, extents, &sent, &received)
    }

    /// Sums the parts of some ranks, of `length` elements each, to an address. Does nothing without elements.
    fn sum(&self, device: &CudaDevice, parts: u64, ranks: usize, to: u64, length: usize) -> Result {
        let extents = Extents("all_reduce");
        let blocks = extents.index("the number of blocks", length.div_ceil(256))?;
        let ranks = extents.index("the ranks", ranks)?;
        let arguments = [Argument::address(parts), Argument::address(to), Argument::wide(length as u64), ranks.into()];
        device.launch("sum_ranks", [blocks, 1, 1], 256, &arguments)
    }

    /// Like [`Self::all_gather`], but rank `r` has `lengths[r]` elements; returns a slice for each rank.
    pub(crate) fn all_gather_sized(
        &self,
        device: &CudaDevice,
        own: &Slice<f32>,
        lengths: &[usize],
    ) -> Result<Vec<Slice<f32>>> {
        let extents = Extents("all_gather");
        extents.equal("the lengths", lengths.len(), self.world)?;
        extents.equal("its own elements", own.len(), lengths.get(self.rank).copied().unwrap_or_default())?;
        let received = lengths.iter().map(|length| device.uninitialised(*length)).collect::<Result<Vec<_>>>()?;
        let sent: Vec<Message> = (0..self.world).map(|peer| (own.address(), own.len(), peer)).collect();
        let places: Vec<Message> =
            received.iter().enumerate().map(|(peer, slice)| (slice.address(), slice.len(), peer)).collect();
        self.exchange(device, extents, &sent, &places)?;
        Ok(received)
    }

    /// The sum over all ranks, in their order, of what each passes for this one: `parts[r]` is for rank `r`.
    pub(crate) fn scatter_sums(&self, device: &CudaDevice, parts: &[Slice<f32>]) -> Result<Slice<f32>> {
        let extents = Extents("scatter_sums");
        extents.equal("the parts", parts.len(), self.world)?;
        let own = parts.get(self.rank).map_or(0, Slice::len);
        let (terms, sums) = (device.uninitialised::<f32>(self.world * own)?, device.uninitialised::<f32>(own)?);
        let sent: Vec<Message> =
            parts.iter().enumerate().map(|(peer, part)| (part.address(), part.len(), peer)).collect();
        let received = (0..self.world).map(|peer| Ok((terms.address_of(peer * own..(peer + 1) * own)?, own, peer)));
        self.exchange(device, extents, &sent, &received.collect::<Result<Vec<_>>>()?)?;
        self.sum(device, terms.address(), self.world, sums.address(), own)?;
        Ok(sums)
    }

    /// Replaces `values` by their sum over the ranks of `group`, in the order of ranks. All ranks call it, each with its group.
    pub(crate) fn reduce_within(&self, device: &CudaDevice, group: Range<usize>, values: &mut Slice<f32>) -> Result {
        if group == (0..self.world) || values.is_empty() {
            return self.all_reduce(device, values);
        }
        cut(values.len(), 2 * DEVICE_PIECE / self.world).try_for_each(|range| {
            let (all, length) = (self.all_gather_range(device, values, range.clone())?, range.len());
            let parts = all.address_of(group.start * length..group.end * length)?;
            self.sum(device, parts, group.len(), values.address_of(range)?, length)
        })
    }

    /// An error of NCCL, with what was started last.
    fn describe(&self, error: CudaError) -> CudaError {
        match error {
            CudaError::Collective { message, .. } => {
                let call = self.last();
                CudaError::Collective { call, message: format!("rank {} of {}: {message}", self.rank, self.world) }
            }
            other => other,
        }
    }
}

impl Peers for DeviceRanks {
    fn fault(&self) -> Result {
        let Err(error) = self.nccl.failure(self.communicator) else { return Ok(()) };
        self.failed.store(true, Ordering::Relaxed);
        // Which rank it was is known on the host, if anywhere, and perhaps a moment later.
        let began = Instant::now();
        while began.elapsed() < NAMED {
            self.lost()?;
            std::thread::sleep(NAMED / 50);
        }
        Err(self.describe(error))
    }

    fn lost(&self) -> Result {
        let Some(Err(error)) = self.host.as_ref().map(Ranks::check_others) else { return Ok(()) };
        self.failed.store(true, Ordering::Relaxed);
        Err(CudaError::Collective { call: self.last(), message: error.to_string() })
    }

    fn limit(&self) -> Duration {
        self.limit
    }

    fn last(&self) -> &'static str {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leave(&self, reason: &str) {
        self.failed.store(true, Ordering::Relaxed);
        if let Some(host) = &self.host {
            host.fail(reason);
        }
    }
}

impl Drop for DeviceRanks {
    fn drop(&mut self) {
        self.nccl.leave(self.communicator);
    }
}

/// Ranges of at most `most` elements that cover `elements`.
fn cut(elements: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    (0..elements).step_by(most.max(1)).map(move |first| first..elements.min(first + most.max(1)))
}

fn narrow(extents: Extents, number: usize) -> Result<c_int> {
    c_int::try_from(number).map_err(|_| CudaError::Extent {
        op: extents.0,
        what: "a rank",
        found: number,
        expected: "below 2147483648".to_owned(),
    })
}

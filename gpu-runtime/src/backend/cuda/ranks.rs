//! Ranks that have a GPU each and exchange slices by NCCL. Sums are in the order of ranks, as [`crate::collective`] says: NCCL moves
//! elements, and a kernel adds them.
#![allow(unsafe_code, reason = "NCCL gets addresses of slices, whose lengths are checked here")]

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::error::Extents;
use super::kernels::Argument;
use super::nccl::{Communicator, Message, Nccl, NcclId};
use super::{CudaDevice, CudaError, Result, Slice};
use crate::collective::slice_of;

/// Elements up to which an all-reduce gathers whole arrays; larger ones are reduced in slices and gathered.
const ONE_EXCHANGE: usize = 4_096;

/// How long [`DeviceRanks::wait`] sleeps between two looks at the device.
const PAUSE: Duration = Duration::from_micros(50);

/// This rank among those of a communicator. All ranks call the same functions with the same extents in the same order, on the device
/// with which they joined.
pub struct DeviceRanks {
    nccl: Arc<Nccl>,
    communicator: Communicator,
    rank: usize,
    world: usize,
    ordinal: i32,
    failed: AtomicBool,
}

// SAFETY: NCCL's functions may be called by any thread; the device's context is made current before each.
unsafe impl Send for DeviceRanks {}
// SAFETY: calls of one communicator must not overlap, which would be calls in an unknown order: a bug of the caller, as such calls of
// ops on one stream are.
unsafe impl Sync for DeviceRanks {}

impl DeviceRanks {
    /// Joins the communicator of an id, which one rank has made and sent to the others. Waits for all of them.
    pub fn join(device: &CudaDevice, nccl: &Arc<Nccl>, id: NcclId, rank: usize, world: usize) -> Result<Self> {
        let extents = Extents("join ranks");
        extents.below("the rank", rank, world)?;
        let [number, count] = [narrow(extents, rank)?, narrow(extents, world)?];
        device.driver().bind()?;
        let communicator = nccl.join(id, number, count)?;
        let (nccl, ordinal) = (nccl.clone(), device.ordinal());
        Ok(Self { nccl, communicator, rank, world, ordinal, failed: AtomicBool::new(false) })
    }

    /// Which rank this is.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many ranks there are.
    pub fn world(&self) -> usize {
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
        device.driver().bind()?;
        call().inspect_err(|_| self.failed.store(true, Ordering::Relaxed))
    }

    /// The elements of all ranks, which have as many each, in the order of ranks.
    pub fn all_gather(&self, device: &CudaDevice, own: &Slice<f32>) -> Result<Slice<f32>> {
        let to = device.uninitialised::<f32>(self.world * own.len())?;
        if own.is_empty() {
            return Ok(to);
        }
        let places = (own.address(), to.address(), own.len());
        // SAFETY: both slices have that many elements, and outlive the collective in the stream's order.
        let call = || unsafe { self.nccl.all_gather(places, self.communicator, device.driver().stream()) };
        self.start(device, Extents("all_gather"), call)?;
        Ok(to)
    }

    /// Replaces the elements of all ranks by those of rank `root`.
    pub fn broadcast(&self, device: &CudaDevice, root: usize, values: &mut Slice<f32>) -> Result {
        let extents = Extents("broadcast");
        extents.below("the root", root, self.world)?;
        if values.is_empty() {
            return Ok(());
        }
        let (places, root) = ((values.address(), values.len()), narrow(extents, root)?);
        // SAFETY: the slice has that many elements, and outlives the collective in the stream's order.
        let call = || unsafe { self.nccl.broadcast(places, root, self.communicator, device.driver().stream()) };
        self.start(device, extents, call)
    }

    /// Sends `parts[r]` to rank `r`, and returns what each rank sends to this one: `lengths[r]` elements of rank `r`.
    pub fn all_to_all(&self, device: &CudaDevice, parts: &[Slice<f32>], lengths: &[usize]) -> Result<Vec<Slice<f32>>> {
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
        let (sent, received, stream) = (some(sent), some(received), device.driver().stream());
        // SAFETY: messages are within slices, which outlive the collective in the stream's order.
        self.start(device, extents, || unsafe { self.nccl.exchange(&sent, &received, self.communicator, stream) })
    }

    /// Replaces `values` by their sum over all ranks, in the order of ranks: the same bits on all of them, and those of
    /// [`Ranks::all_reduce`](crate::collective::Ranks::all_reduce).
    pub fn all_reduce(&self, device: &CudaDevice, values: &mut Slice<f32>) -> Result {
        if self.world == 1 || values.is_empty() {
            return Ok(());
        }
        if values.len() <= ONE_EXCHANGE || self.world == 2 {
            let parts = self.all_gather(device, values)?;
            let (to, length) = (values.address(), values.len());
            return self.sum(device, &parts, to, length);
        }
        let extents = Extents("all_reduce");
        let slices: Vec<_> = (0..self.world).map(|rank| slice_of(values.len(), self.world, rank)).collect();
        let mut places = Vec::with_capacity(self.world);
        for (peer, slice) in slices.iter().enumerate() {
            places.push((values.address_of(slice.clone())?, slice.len(), peer));
        }
        let (own, count, _) = places.get(self.rank).copied().unwrap_or_default();
        let parts = device.uninitialised::<f32>(self.world * count)?;
        let mut received = Vec::with_capacity(self.world);
        for peer in 0..self.world {
            received.push((parts.address_of(peer * count..(peer + 1) * count)?, count, peer));
        }
        self.exchange(device, extents, &places, &received)?;
        self.sum(device, &parts, own, count)?;
        // Its own sums to all others, and theirs to their places.
        let others = |place: &Message| place.2 != self.rank;
        let sent: Vec<Message> = (0..self.world).map(|peer| (own, count, peer)).filter(others).collect();
        let received: Vec<Message> = places.into_iter().filter(others).collect();
        self.exchange(device, extents, &sent, &received)
    }

    /// The sum of the parts of all ranks, of `length` elements each, to an address.
    fn sum(&self, device: &CudaDevice, parts: &Slice<f32>, to: u64, length: usize) -> Result {
        let extents = Extents("all_reduce");
        let blocks = extents.index("the number of blocks", length.div_ceil(256))?;
        let world = extents.index("the ranks", self.world)?;
        let arguments = [parts.into(), Argument::address(to), Argument::wide(length as u64), world.into()];
        device.launch("sum_ranks", [blocks, 1, 1], 256, &arguments)
    }

    /// Waits for all work on the device, collectives among it.
    ///
    /// # Errors
    ///
    /// Where a rank is lost or does not come within `limit`: the communicator is of no use any more, and the worker has to end.
    pub fn wait(&self, device: &CudaDevice, limit: Duration) -> Result {
        let began = Instant::now();
        let failed = |error: CudaError| {
            self.failed.store(true, Ordering::Relaxed);
            error
        };
        loop {
            let idle = device.driver().is_idle();
            // What a kernel reads after a failed collective was never written: the cause comes first.
            self.nccl.failure(self.communicator).map_err(failed)?;
            if idle.map_err(failed)? {
                return Ok(());
            }
            if began.elapsed() > limit {
                let message = format!("not done after {} s: a rank is missing", limit.as_secs_f64());
                return Err(failed(CudaError::Collective { call: "a collective", message }));
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for DeviceRanks {
    fn drop(&mut self) {
        self.nccl.leave(self.communicator, self.failed.load(Ordering::Relaxed));
    }
}

fn narrow(extents: Extents, number: usize) -> Result<c_int> {
    c_int::try_from(number).map_err(|_| CudaError::Extent {
        op: extents.0,
        what: "a rank",
        found: number,
        expected: "below 2147483648".to_owned(),
    })
}

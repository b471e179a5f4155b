//! Memory of devices: what the engine may use of one, and what exchanges between ranks that have a device each take.

/// Elements that such ranks exchange at a time: larger arrays go in pieces, whose sums have the same bits.
pub const DEVICE_PIECE: usize = 1 << 22;

/// Share of a device's memory that the engine uses at most: the rest is for libraries, graphs, and gaps between allocations.
const MOST: (u64, u64) = (92, 100);

/// Bytes of what is free that are left: kernels of cuBLASLt that are loaded later, and other programs. An eighth of small devices.
const LEFT_FREE: u64 = 3 << 29;
const LEFT_OF: u64 = 8;

/// The memory of a device: its size, and the bytes that nothing uses, as its driver reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceMemory {
    /// Bytes of the device's memory.
    pub total: u64,
    /// Bytes that neither this process nor another one uses.
    pub free: u64,
}

impl DeviceMemory {
    /// Returns the memory of a device that nothing uses.
    pub fn unused(total: u64) -> Self {
        Self { total, free: total }
    }

    /// Returns the bytes that the engine may use: 92 % of all, but 1.5 GiB less than what is free. Of a device with less
    /// than 12 GiB, an eighth is left free instead of 1.5 GiB.
    pub fn budget(self) -> u64 {
        let (share, of) = MOST;
        (self.total / of * share).min(self.free.saturating_sub(LEFT_FREE.min(self.total / LEFT_OF)))
    }
}

/// Bytes that NCCL takes for a communicator: buffers of its channels, by the settings of NCCL 2.18 to 2.27 for eight
/// GPUs with NVLink. This is an assumption that has not been measured.
pub const COMMUNICATOR_BYTES: usize = 512 << 20;

/// Returns the bytes that exchanges of parameters, gradients and sums of rows take in addition to their inputs and
/// results, given the sizes of axes. A sum of parts takes the most: a rank has a piece for each rank of the
/// communicator, as many from them, and their sums. Exchanges of one communicator follow those of another.
pub fn exchange_bytes(tp: usize, dp: usize, ep: usize) -> usize {
    let most = |ranks: usize| size_of::<f32>() * (2 * DEVICE_PIECE + DEVICE_PIECE.div_ceil(ranks));
    communicator_ranks(tp, dp, ep).map(most).max().unwrap_or(0)
}

/// Returns the number of communicators of a rank.
pub fn communicators(tp: usize, dp: usize, ep: usize) -> usize {
    communicator_ranks(tp, dp, ep).count()
}

/// Ranks of each communicator of a rank: of its replica, of replicas, and of the tensor parallel ranks where these are not all of the
/// replica.
fn communicator_ranks(tp: usize, dp: usize, ep: usize) -> impl Iterator<Item = usize> {
    let within = if ep > 1 { tp } else { 1 };
    [tp * ep, dp, within].into_iter().filter(|ranks| *ranks > 1)
}

#[cfg(test)]
mod tests {
    use super::DeviceMemory;

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_engine_uses_what_is_free_and_leaves_some() {
        let budget = |total: u64, free: u64| DeviceMemory { total: total * GIB, free: free * GIB }.budget();
        assert_eq!(budget(100, 100), 100 * GIB / 100 * 92);
        assert_eq!(budget(100, 60), 60 * GIB - 3 * GIB / 2);
        assert_eq!([budget(100, 1), budget(100, 0)], [0, 0]);
        assert_eq!([budget(4, 4), budget(4, 2)], [7 * GIB / 2, 3 * GIB / 2], "an eighth of a small device");
        assert_eq!(DeviceMemory::unused(100 * GIB).budget(), budget(100, 100));
    }
}

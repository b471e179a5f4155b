//! Device memory of exchanges between ranks that have a device each.

/// Elements that such ranks exchange at a time: larger arrays go in pieces, whose sums have the same bits.
pub(crate) const DEVICE_PIECE: usize = 1 << 22;

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

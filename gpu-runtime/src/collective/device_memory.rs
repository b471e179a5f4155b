//! Memory that exchanges between ranks with a device each take there.

/// Elements that such ranks exchange at a time: larger arrays go in pieces, whose sums have the same bits.
pub(crate) const DEVICE_PIECE: usize = 1 << 22;

/// Bytes that NCCL takes for a communicator: buffers of its channels, by the settings of NCCL 2.18 to 2.27 for eight GPUs with
/// NVLink. An assumption, which nothing has measured.
pub const COMMUNICATOR_BYTES: usize = 512 << 20;

/// Bytes that exchanges of parameters, gradients and sums of rows take beside what they read and return: most in a sum of parts, of
/// which a rank has a piece for each rank, as many from them, and their sums.
pub fn exchange_bytes(world: usize) -> usize {
    if world == 1 { 0 } else { size_of::<f32>() * (2 * DEVICE_PIECE + DEVICE_PIECE.div_ceil(world)) }
}

/// Communicators of a rank, given the sizes of axes: of its replica, of replicas, and of the tensor parallel ranks where these are
/// not all of the replica.
pub fn communicators(tp: usize, dp: usize, ep: usize) -> usize {
    [tp * ep > 1, dp > 1, tp > 1 && ep > 1].into_iter().filter(|is_there| *is_there).count()
}

//! Running a kernel: blocks, warps, and what instructions do.

pub(crate) mod access;
pub(crate) mod async_copy;
pub(crate) mod barrier;
pub(crate) mod block;
pub(crate) mod collective;
pub(crate) mod copies;
pub(crate) mod count;
pub(crate) mod in_order;
pub(crate) mod launch;
pub(crate) mod machine;
pub(crate) mod memory_ops;
pub(crate) mod operands;
pub(crate) mod step;
pub(crate) mod tensor;
pub(crate) mod warp;

/// The lanes of a mask, in ascending order.
pub(crate) fn lanes(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (lane < 32).then_some(lane)
    })
}

//! Norms of gradients, and their sums.

use std::ops::Range;

use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::{Element, Slice};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::kernels::Argument;

/// Elements of a block, as in `kernels/optimizer.cu`.
const CHUNK: usize = 4096;

/// Arrays cut into chunks, one for each block of a launch.
pub(super) struct Chunks {
    /// Each array's first block, and after them the number of blocks.
    pub(crate) first: Slice<u32>,
    pub(crate) arrays: u32,
    pub(crate) blocks: u32,
}

impl Chunks {
    /// The chunks of arrays with these lengths.
    pub(crate) fn new(device: &CudaDevice, extents: Extents, lengths: &[usize]) -> Result<Self> {
        let mut first = vec![0];
        let mut blocks = 0;
        for length in lengths {
            blocks += length.div_ceil(CHUNK);
            first.push(extents.index("the number of chunks", blocks)?);
        }
        let arrays = extents.index("the number of arrays", lengths.len())?;
        Ok(Self { first: device.upload(&first)?, arrays, blocks: extents.index("the number of chunks", blocks)? })
    }
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Terms {
    a: u64,
    b: u64,
    length: u64,
}

impl Element for Terms {}

/// The sum of squares of each array's elements in `a`, or in `a + b` if `b` is given. It is computed in f64, in an
/// order that depends only on the array's length. Finite exactly when all its elements are. Waits for all work on the
/// device.
pub(crate) fn squared_norms(device: &CudaDevice, a: &[Slice<f32>], b: Option<&[Slice<f32>]>) -> Result<Vec<f64>> {
    let extents = Extents("squared_norms");
    if let Some(b) = b {
        extents.equal("the second list", b.len(), a.len())?;
        a.iter().zip(b).try_for_each(|(a, b)| extents.equal("an array of the second list", b.len(), a.len()))?;
    }
    let lengths: Vec<usize> = a.iter().map(Slice::len).collect();
    let second = |i: usize| b.and_then(|b| b.get(i)).map_or(0, Slice::address);
    let terms = a.iter().enumerate().map(|(i, a)| Terms { a: a.address(), b: second(i), length: a.len() as u64 });
    let terms = device.upload(&terms.collect::<Vec<_>>())?;
    let chunks = Chunks::new(device, extents, &lengths)?;
    let mut partial = device.uninitialised::<f64>(chunks.blocks as usize)?;
    let mut sums = device.uninitialised::<f64>(a.len())?;
    let arguments = [(&terms).into(), (&chunks.first).into(), chunks.arrays.into(), (&mut partial).into()];
    device.launch("squares", [chunks.blocks, 1, 1], 256, &arguments)?;
    let arguments = [(&partial).into(), (&chunks.first).into(), (&mut sums).into()];
    device.launch("sum_partials", [chunks.arrays, 1, 1], 256, &arguments)?;
    sums.to_host()
}

/// `to += from`, element by element.
pub(crate) fn add(device: &CudaDevice, to: &mut Slice<f32>, from: &Slice<f32>) -> Result {
    Extents("add").equal("the number of terms", from.len(), to.len())?;
    add_part(device, to, 0, from, 0..from.len())
}

/// Adds a range of `from` to the elements of `to` from `first` on.
pub(crate) fn add_part(
    device: &CudaDevice,
    to: &mut Slice<f32>,
    first: usize,
    from: &Slice<f32>,
    range: Range<usize>,
) -> Result {
    let (extents, length) = (Extents("add"), range.len());
    let [to, from] = [to.address_of(first..first + length)?, from.address_of(range)?].map(Argument::address);
    let blocks = extents.index("the number of blocks", length.div_ceil(256))?;
    device.launch("add", [blocks, 1, 1], 256, &[to, from, Argument::wide(length as u64)])
}

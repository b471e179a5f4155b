//! Passes on a GPU: the arena, the graphs of those that repeat, and fences between them.

use std::borrow::Cow;
use std::io;

use super::Cuda;
use super::params::CudaParams;
use crate::backend::cuda::device::fence::Fence;
use crate::backend::{BufferBytes, ChunkSink, Fences, MicrobatchRows, Passes};
use crate::collective::exchange_bytes;
use crate::parallel::Parallel;

/// Rows that tensor cores multiply in about the time in which a GPU reads the weights: its FLOP per byte.
const BALANCED_ROWS: usize = 256;

/// Rows of a pass that keep a GPU busy. Memory may allow fewer.
const MICROBATCH_ROWS: usize = 8192;

impl Passes for Cuda {
    fn microbatch_rows(&self) -> MicrobatchRows {
        MicrobatchRows::of_all(MICROBATCH_ROWS)
    }

    fn balanced_rows(&self) -> usize {
        BALANCED_ROWS
    }

    /// Runs a pass whose work goes through the device's graphs. All work is queued in the end, also if the pass panics.
    fn repeated<R>(&self, pass: impl FnOnce() -> R) -> R {
        let open = Open(self);
        self.device.queue().begin_repeated();
        let result = pass();
        std::mem::forget(open);
        self.done(self.device.queue().end_repeated());
        result
    }

    fn end_pass(&self) {
        self.device.arena().end_pass();
    }

    // Errors of these are those of a lost device, which the next op reports.
    fn limit_unused(&self, bytes: usize) {
        let _ = self.device.arena().limit_unused(bytes);
    }

    fn trim(&self) {
        let _ = self.device.arena().trim();
    }

    fn buffer_bytes(&self) -> BufferBytes {
        self.device.arena().bytes()
    }

    fn reset_peak(&self) {
        self.device.arena().reset_peak();
    }

    fn exchange_bytes(&self, layout: Parallel) -> usize {
        exchange_bytes(layout.tp(), layout.dp(), layout.ep())
    }
}

impl Fences for Cuda {
    type Fence = Fence;
    type Params = CudaParams;

    fn fence(&self) -> Fence {
        self.done(self.device.fence())
    }

    fn read_params(&self, params: &CudaParams, index: usize, fence: &Fence, to: &mut ChunkSink<'_>) -> io::Result<()> {
        self.done(params.0[index].read(fence, to))
    }

    fn param_to_host<'a>(&self, params: &'a CudaParams, index: usize, fence: &Fence) -> Cow<'a, [f32]> {
        Cow::Owned(self.done(params.0[index].to_host_after(fence)))
    }
}

/// A pass that may repeat, until it is dropped by a panic.
struct Open<'a>(&'a Cuda);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        // As above.
        let _ = self.0.device.queue().end_repeated();
    }
}

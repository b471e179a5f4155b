//! Passes through a model, and the buffers that they share.

use super::{BufferBytes, MicrobatchRows};
use crate::parallel::Parallel;

/// Rows that a processor without tiles computes in about the time in which it reads the weights.
pub const BALANCED_ROWS: usize = 16;

/// Operations of a backend on passes as a whole.
pub trait Passes {
    /// Returns the number of rows of a pass that suits the device's caches. No result depends on it.
    fn microbatch_rows(&self) -> MicrobatchRows {
        MicrobatchRows::of_all(256)
    }

    /// Returns the number of rows whose computation takes about as long as reading the weights: wider passes take
    /// longer. No result depends on it.
    fn balanced_rows(&self) -> usize {
        BALANCED_ROWS
    }

    /// Runs a pass that may be repeated with the same work, as in decoding, so that a device may launch it as a whole.
    /// Results are unchanged.
    fn repeated<R>(&self, pass: impl FnOnce() -> R) -> R {
        pass()
    }

    /// Marks the end of a pass: frees buffers that the last few passes did not use.
    fn end_pass(&self);

    /// Sets the maximum bytes of free buffers that are retained between passes.
    fn limit_unused(&self, bytes: usize);

    /// Frees all free buffers.
    fn trim(&self);

    /// Returns the bytes of buffers: at the peak, in use and free.
    fn buffer_bytes(&self) -> BufferBytes;

    /// Resets [`BufferBytes::peak`] to the bytes in use now.
    fn reset_peak(&self);

    /// Returns the bytes that exchanges of the layout's ranks take on the device, in addition to their inputs and
    /// results; 0 if they use host memory.
    fn exchange_bytes(&self, _layout: Parallel) -> usize {
        0
    }
}

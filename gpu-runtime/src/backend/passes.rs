//! Passes through a model, and the buffers that they share.

use super::{BufferBytes, MicrobatchRows};
use crate::parallel::Parallel;

/// Rows that a processor without tiles computes in about the time in which it reads the weights.
pub(crate) const BALANCED_ROWS: usize = 16;

/// Operations of a backend on passes as a whole.
pub trait Passes {
    /// Rows of a pass that suit the device's caches. No result depends on them.
    fn microbatch_rows(&self) -> MicrobatchRows {
        MicrobatchRows::of_all(256)
    }

    /// Rows that a pass computes in about the time in which it reads the weights: wider passes take longer. No result depends on
    /// them.
    fn balanced_rows(&self) -> usize {
        BALANCED_ROWS
    }

    /// Runs a pass that others with the same work may follow, as in decoding: a device may launch that as a whole then. Changes no
    /// bits.
    fn repeated<R>(&self, pass: impl FnOnce() -> R) -> R {
        pass()
    }

    /// Marks the end of a pass: frees buffers that the last few passes did not use.
    fn end_pass(&self);

    /// Sets the most bytes of free buffers that are retained between passes.
    fn limit_unused(&self, bytes: usize);

    /// Frees all free buffers.
    fn trim(&self);

    /// Bytes of buffers: their peak, those in use, and those free.
    fn buffer_bytes(&self) -> BufferBytes;

    /// Resets [`BufferBytes::peak`] to what is in use now.
    fn reset_peak(&self);

    /// Bytes that exchanges of the layout's ranks take, beside what they read and return, where they are not the host's.
    fn exchange_bytes(&self, _layout: Parallel) -> usize {
        0
    }
}

//! Passes on a processor: its pools of buffers.

use std::borrow::Cow;

use super::Cpu;
use crate::backend::host::HostParams;
use crate::backend::{BufferBytes, ChunkSink, Fences, MicrobatchRows, Passes};

/// Its work is done when an op returns.
impl Fences for Cpu {
    type Fence = ();
    type Params = HostParams;

    fn fence(&self) {}

    fn read_params(
        &self,
        (params, index): (&HostParams, usize),
        (): &(),
        to: &mut ChunkSink<'_>,
    ) -> std::io::Result<()> {
        to(&params[index])
    }

    fn param_to_host<'a>(&self, (params, index): (&'a HostParams, usize), (): &()) -> Cow<'a, [f32]> {
        Cow::Borrowed(&params[index])
    }
}

impl Passes for Cpu {
    fn microbatch_rows(&self) -> MicrobatchRows {
        self.blocking.microbatch(self.dtype)
    }

    fn end_pass(&self) {
        self.usage.next_pass();
        self.floats.evict_idle();
        self.words.evict_idle();
    }

    fn limit_unused(&self, bytes: usize) {
        self.usage.limit_free(bytes);
    }

    fn trim(&self) {
        self.floats.trim();
        self.words.trim();
    }

    fn buffer_bytes(&self) -> BufferBytes {
        BufferBytes { peak: self.usage.peak(), used: self.usage.in_use(), unused: self.usage.free() }
    }

    fn reset_peak(&self) {
        self.usage.reset_peak();
    }
}

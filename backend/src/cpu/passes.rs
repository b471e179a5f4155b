//! Passes on a processor: its pools of buffers.

use super::Cpu;
use crate::host::OnHost;
use crate::{BufferBytes, MicrobatchRows, Passes};

impl OnHost for Cpu {}

impl Passes for Cpu {
    fn microbatch_rows(&self) -> MicrobatchRows {
        self.blocking.microbatch(self.dtype)
    }

    fn balanced_rows(&self) -> usize {
        self.blocking.balanced_rows(self.dtype)
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

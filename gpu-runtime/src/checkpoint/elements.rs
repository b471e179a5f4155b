//! Sources of the elements of tensors that are written: memory, or elsewhere.

use std::borrow::Cow;
use std::io;

use crate::backend::ChunkSink;

/// Elements of a tensor, in row-major order.
pub(crate) trait Elements {
    fn count(&self) -> usize;

    /// Calls `sink` with all elements, chunk after chunk, until it fails.
    fn for_each_chunk(&self, sink: &mut ChunkSink<'_>) -> io::Result<()>;

    /// All elements at once.
    fn whole(&self) -> io::Result<Cow<'_, [f32]>> {
        let mut all = Vec::with_capacity(self.count());
        self.for_each_chunk(&mut |chunk| {
            all.extend_from_slice(chunk);
            Ok(())
        })?;
        Ok(Cow::Owned(all))
    }
}

impl Elements for [f32] {
    fn count(&self) -> usize {
        self.len()
    }

    fn for_each_chunk(&self, sink: &mut ChunkSink<'_>) -> io::Result<()> {
        sink(self)
    }

    fn whole(&self) -> io::Result<Cow<'_, [f32]>> {
        Ok(Cow::Borrowed(self))
    }
}

impl Elements for Vec<f32> {
    fn count(&self) -> usize {
        self.len()
    }

    fn for_each_chunk(&self, sink: &mut ChunkSink<'_>) -> io::Result<()> {
        self.as_slice().for_each_chunk(sink)
    }

    fn whole(&self) -> io::Result<Cow<'_, [f32]>> {
        self.as_slice().whole()
    }
}

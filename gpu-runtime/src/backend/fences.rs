//! Points in the order of a backend's work, for reads by other threads.

use std::io;

/// A backend whose work has an order in which other threads can read what is there.
pub trait Fences {
    /// A point in that order.
    type Fence: Send + Sync + 'static;

    /// After all work that was asked for so far. Another thread that reads after it sees the results of that work; it neither waits for
    /// what is asked for later nor holds it up. Nothing that it reads may be written meanwhile: who shares data copies it before.
    fn fence(&self) -> Self::Fence;
}

/// What gets an array's elements, chunk after chunk, until it fails.
pub type ChunkSink<'a> = dyn FnMut(&[f32]) -> io::Result<()> + 'a;

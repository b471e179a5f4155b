//! Points in the order of a backend's work, for reads by other threads.

use std::borrow::Cow;
use std::io;

use super::Params;

/// A backend whose work is ordered, so that other threads can read consistent data.
pub trait Fences {
    /// A point in the order of the backend's work.
    type Fence: Send + Sync + 'static;
    /// Masters, moments or gradients.
    type Params: Params;

    /// Returns a fence behind all work that was requested so far. Another thread that reads after the fence sees the
    /// results of that work; it neither waits for later work nor delays it. The data that it reads must not be written
    /// meanwhile: owners of shared data copy it before they write.
    fn fence(&self) -> Self::Fence;

    /// Passes an array's elements to `to`, as they were at a fence and in order, until it fails.
    fn read_params(
        &self,
        params: &Self::Params,
        index: usize,
        fence: &Self::Fence,
        to: &mut ChunkSink<'_>,
    ) -> io::Result<()>;

    /// Returns the elements of an array as they were at a fence; borrowed if they are in host memory.
    fn param_to_host<'a>(&self, params: &'a Self::Params, index: usize, fence: &Self::Fence) -> Cow<'a, [f32]>;
}

/// Receiver of an array's elements, chunk after chunk, until it fails.
pub type ChunkSink<'a> = dyn FnMut(&[f32]) -> io::Result<()> + 'a;

//! Points in the order of a device's work.

use std::sync::Arc;

use super::error::Result;
use super::event::Event;
use super::queue::Queue;

/// A point in the order of a device's work: reads behind it see everything written before it, and do not wait for later
/// work.
pub struct Fence {
    event: Event,
    queue: Arc<Queue>,
}

impl Fence {
    /// A fence behind all work that was requested so far.
    pub(crate) fn new(queue: &Arc<Queue>) -> Result<Self> {
        queue.bind()?;
        let event = Event::new(queue)?;
        queue.record(&event)?;
        Ok(Self { event, queue: queue.clone() })
    }

    pub(crate) fn event(&self) -> &Event {
        &self.event
    }
}

impl Drop for Fence {
    fn drop(&mut self) {
        // The event is released for the device's context, on any thread; one of a lost device ends with the process.
        let _ = self.queue.bind();
    }
}

//! Events of a device, and what streams wait for.

use super::Device;
use crate::error::{INVALID_HANDLE, Result};
use crate::stream::Event;
use crate::work::Work;

impl Device {
    pub(crate) fn create_event(&mut self) -> usize {
        let number = self.number();
        self.events.insert(number, Event::default());
        number
    }

    /// Destroys an event. As on a GPU, work submitted before still records it and waits for it.
    pub(crate) fn destroy_event(&mut self, event: usize) -> Result {
        let entry = self.event(event)?;
        entry.destroyed = true;
        if entry.queued == 0 {
            self.events.remove(&event);
        }
        Ok(())
    }

    /// A record or a wait that names the event has left its queue.
    pub(super) fn event_used(&mut self, event: usize) {
        let Some(entry) = self.events.get_mut(&event) else { return };
        entry.queued -= 1;
        if entry.destroyed && entry.queued == 0 {
            self.events.remove(&event);
        }
    }

    pub(crate) fn event(&mut self, event: usize) -> Result<&mut Event> {
        self.events.get_mut(&event).filter(|event| !event.destroyed).ok_or(INVALID_HANDLE)
    }

    pub(crate) fn record_event(&mut self, event: usize, stream: usize) -> Result {
        let capture = self.stream(stream)?.capture;
        let entry = self.event(event)?;
        entry.capture = capture;
        if capture.is_none() {
            entry.submitted += 1;
            entry.queued += 1;
            self.submit(stream, Work::Record { event })?;
        }
        Ok(())
    }

    /// A stream that waits for an event of a capture takes part in the capture.
    pub(crate) fn wait_event(&mut self, stream: usize, event: usize) -> Result {
        let entry = self.event(event)?;
        let (capture, recording) = (entry.capture, entry.submitted);
        if let Some(graph) = capture {
            // An event of a capture that has ended orders nothing.
            if self.captures.contains_key(&graph) {
                self.stream(stream)?.capture = capture;
            }
            return Ok(());
        }
        if self.stream(stream)?.capture.is_some() {
            return Ok(());
        }
        self.event(event)?.queued += 1;
        self.submit(stream, Work::Wait { event, recording })
    }

    /// The host has seen an event.
    pub(crate) fn host_saw(&mut self, event: usize) {
        if let Some(time) = self.events.get(&event).and_then(|event| event.time(event.recorded)) {
            self.known.join(&time);
        }
    }
}

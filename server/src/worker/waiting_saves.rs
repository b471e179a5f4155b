//! Saves that failed because the disk was full. They are retried, and their run's next request waits for them, because
//! clients never repeat a request whose future has failed.

use std::collections::BTreeMap;
use std::time::Instant;

use trainyard_protocol::{OpError, RequestId, RunId};

use super::reply::PendingReply;

/// Saves that wait for space.
#[derive(Default)]
pub(super) struct WaitingSaves(BTreeMap<RequestId, WaitingSave>);

struct WaitingSave {
    due: Instant,
    reply: PendingReply,
}

impl WaitingSaves {
    /// Keeps a failed save for another attempt, or returns the answer.
    pub(super) fn keep(
        &mut self,
        request: &RequestId,
        mut reply: PendingReply,
        error: &OpError,
    ) -> Option<PendingReply> {
        let Some(save) = reply.save.as_mut().filter(|save| error.no_space && save.is_patient()) else {
            return Some(reply);
        };
        let pause = save.next_pause();
        tracing::warn!(%request, pause_ms = pause.as_millis(), "save deferred: no disk space, retrying");
        let due = Instant::now() + pause;
        self.0.insert(request.clone(), WaitingSave { due, reply });
        None
    }

    /// Takes the saves whose next attempt is due.
    pub(super) fn due(&mut self) -> Vec<(RequestId, PendingReply)> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let now = Instant::now();
        self.0.extract_if(.., |_, save| save.due <= now).map(|(request, save)| (request, save.reply)).collect()
    }

    /// Takes a save that waits.
    pub(super) fn take(&mut self, request: &RequestId) -> Option<PendingReply> {
        self.0.remove(request).map(|save| save.reply)
    }

    /// Drops the saves of a run that is unloaded.
    pub(super) fn forget(&mut self, run: &RunId) {
        self.0.retain(|_, save| save.reply.run.as_ref() != Some(run));
    }
}

//! Writes between their senders and the writer's next transaction.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{Id, JoinSet};

use crate::context::core::{Core, QueuedWrite, Subject};

/// How long to wait before a preparation that failed is repeated.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// How often it is repeated when the scheduler closes.
const LAST_ATTEMPTS: u32 = 3;

/// Received writes in their order. One that is still being prepared lets others pass, except those about the same.
#[derive(Default)]
pub(super) struct Inbox {
    entries: VecDeque<Entry>,
    preparations: JoinSet<Option<Box<dyn QueuedWrite>>>,
}

enum Entry {
    Ready(Box<dyn QueuedWrite>),
    /// By the task with this id.
    Preparing(Id, Vec<Subject>),
}

impl Inbox {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn is_preparing(&self) -> bool {
        !self.preparations.is_empty()
    }

    pub(super) fn push(&mut self, mut write: Box<dyn QueuedWrite>, core: &Arc<Core>) {
        let entry = match write.is_ready() {
            true => Entry::Ready(write),
            false => {
                let subjects = write.subjects();
                let preparation = self.preparations.spawn(prepare(write, Arc::clone(core)));
                Entry::Preparing(preparation.id(), subjects)
            }
        };
        self.entries.push_back(entry);
    }

    /// Waits until a write has been prepared; false when none is being prepared.
    pub(super) async fn prepared(&mut self) -> bool {
        match self.preparations.join_next_with_id().await {
            None => return false,
            Some(Ok((id, Some(write)))) => {
                let of_task = |entry: &&mut Entry| matches!(entry, Entry::Preparing(task, _) if *task == id);
                if let Some(entry) = self.entries.iter_mut().find(of_task) {
                    *entry = Entry::Ready(write);
                }
            }
            // What is about the same must not be written without it.
            Some(Ok((_, None))) => {}
            Some(Err(error)) => tracing::error!(%error, "a record could not be prepared; a restart repeats the work"),
        }
        true
    }

    /// Moves what can be written to `batch`, until that holds `most` writes.
    pub(super) fn take(&mut self, batch: &mut Vec<Box<dyn QueuedWrite>>, most: usize) {
        let mut behind = BTreeSet::new();
        for entry in std::mem::take(&mut self.entries) {
            match entry {
                Entry::Ready(write) if batch.len() < most && !waits(&*write, &behind) => batch.push(write),
                entry => {
                    behind.extend(match &entry {
                        Entry::Ready(write) => write.subjects(),
                        Entry::Preparing(_, subjects) => subjects.clone(),
                    });
                    self.entries.push_back(entry);
                }
            }
        }
    }
}

/// Whether a write has to wait for others that are about these subjects.
fn waits(write: &dyn QueuedWrite, behind: &BTreeSet<Subject>) -> bool {
    !behind.is_empty()
        && write.subjects().iter().any(|subject| *subject == Subject::Everything || behind.contains(subject))
}

/// Prepares a write, however often that fails; `None` when the scheduler closes and it still fails.
async fn prepare(mut write: Box<dyn QueuedWrite>, core: Arc<Core>) -> Option<Box<dyn QueuedWrite>> {
    let mut failures = 0_u32;
    while write.prepare(&core).await.is_err() {
        failures = failures.saturating_add(1);
        if core.is_closed() && failures > LAST_ATTEMPTS {
            return None;
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
    Some(write)
}

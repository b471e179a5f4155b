//! Writes between their senders and the writer's next transaction.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{Id, JoinSet};

use crate::context::core::{Core, QueuedWrite, Subject, Urgency};

/// Pause before a failed preparation is repeated.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// Number of attempts when the scheduler closes.
const LAST_ATTEMPTS: u32 = 3;

/// Received writes in their order. A write that is being prepared lets others pass, except those about the same
/// subjects.
#[derive(Default)]
pub(super) struct Inbox {
    entries: VecDeque<Entry>,
    preparations: JoinSet<Option<Box<dyn QueuedWrite>>>,
}

enum Entry {
    Ready(Box<dyn QueuedWrite>),
    /// The task with this id is preparing the write.
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

    /// Waits until a write has been prepared. Returns false if none is being prepared.
    pub(super) async fn prepared(&mut self) -> bool {
        match self.preparations.join_next_with_id().await {
            None => return false,
            Some(Ok((id, Some(write)))) => {
                let of_task = |entry: &&mut Entry| matches!(entry, Entry::Preparing(task, _) if *task == id);
                if let Some(entry) = self.entries.iter_mut().find(of_task) {
                    *entry = Entry::Ready(write);
                }
            }
            // Writes about the same subjects must not be committed without it.
            Some(Ok((_, None))) => {}
            Some(Err(error)) => tracing::error!(%error, "a record could not be prepared; a restart repeats the work"),
        }
        true
    }

    /// Moves writable entries to `batch`, until they concern `most` rows. A write of more rows is taken alone; notes are
    /// small and don't count.
    pub(super) fn take(&mut self, batch: &mut Vec<Box<dyn QueuedWrite>>, most: usize) {
        let (mut behind, mut full) = (BTreeSet::new(), false);
        let mut rows: usize = batch.iter().map(|write| counted_rows(&**write)).sum();
        for entry in std::mem::take(&mut self.entries) {
            match entry {
                Entry::Ready(write) if !full && !waits(&*write, &behind) => {
                    let more = counted_rows(&*write);
                    if rows > 0 && rows + more > most {
                        full = true;
                        behind.extend(write.subjects());
                        self.entries.push_back(Entry::Ready(write));
                    } else {
                        rows += more;
                        batch.push(write);
                    }
                }
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

fn counted_rows(write: &dyn QueuedWrite) -> usize {
    if write.urgency() == Urgency::Note { 0 } else { write.rows() }
}

/// Returns whether a write must wait for others that are about these subjects.
fn waits(write: &dyn QueuedWrite, behind: &BTreeSet<Subject>) -> bool {
    !behind.is_empty()
        && write.subjects().iter().any(|subject| *subject == Subject::Everything || behind.contains(subject))
}

/// Prepares a write, repeatedly if that fails. Returns `None` if the scheduler closes and the preparation still fails.
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

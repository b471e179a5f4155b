//! Wakeups of background tasks, with the reasons for them.

use std::sync::Arc;

use tokio::sync::Notify;

/// Wakes one task. A wake that comes before the task waits is not lost. Clones wake the same task.
#[derive(Clone, Default)]
pub(crate) struct Wakeup(Arc<Notify>);

impl Wakeup {
    /// Wakes the task, now or as soon as it waits.
    pub(crate) fn wake(&self) {
        self.0.notify_one();
    }

    /// Waits until the task is woken.
    pub(crate) async fn woken(&self) {
        self.0.notified().await;
    }
}

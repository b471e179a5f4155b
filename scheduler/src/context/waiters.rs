//! Waiting for requests to end without polling the store.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use crate::context::lock::lock;

type Channels<K> = Arc<Mutex<HashMap<K, watch::Sender<()>>>>;

/// Waiting tasks by key. Each costs one entry, but neither a thread nor a timer.
pub(crate) struct Waiters<K: Eq + Hash + Clone> {
    channels: Channels<K>,
}

impl<K: Eq + Hash + Clone> Default for Waiters<K> {
    fn default() -> Self {
        Self { channels: Channels::default() }
    }
}

impl<K: Eq + Hash + Clone> Waiters<K> {
    /// Registers interest in a key. Call this before the first look at the state, so that nothing is missed.
    pub(crate) fn register(&self, key: K) -> Waiter<K> {
        let receiver = lock(&self.channels).entry(key.clone()).or_insert_with(|| watch::channel(()).0).subscribe();
        Waiter { key, receiver: Some(receiver), channels: Arc::clone(&self.channels) }
    }

    /// Wakes all tasks that wait for `key`.
    pub(crate) fn wake(&self, key: &K) {
        // A receiver notices that its sender was dropped.
        lock(&self.channels).remove(key);
    }

    /// Returns the keys that tasks wait for, in no particular order.
    pub(crate) fn keys(&self) -> Vec<K> {
        lock(&self.channels).keys().cloned().collect()
    }

    /// Wakes all waiting tasks.
    pub(crate) fn wake_all(&self) {
        lock(&self.channels).clear();
    }
}

/// Registered interest in a key.
pub(crate) struct Waiter<K: Eq + Hash + Clone> {
    key: K,
    receiver: Option<watch::Receiver<()>>,
    channels: Channels<K>,
}

impl<K: Eq + Hash + Clone> Waiter<K> {
    /// Returns once `key` was woken after the registration.
    pub(crate) async fn woken(&mut self) {
        if let Some(receiver) = &mut self.receiver {
            let _ = receiver.changed().await;
        }
    }
}

impl<K: Eq + Hash + Clone> Drop for Waiter<K> {
    fn drop(&mut self) {
        let mut channels = lock(&self.channels);
        self.receiver = None;
        if channels.get(&self.key).is_some_and(|sender| sender.receiver_count() == 0) {
            channels.remove(&self.key);
        }
    }
}

//! The one task of a process that writes: it applies what has queued up in one transaction, commits once, then
//! answers everyone.

mod transaction;

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::{mpsc, oneshot};

use self::transaction::{fails_all, transact};
use crate::Error;
use crate::core::{Core, Message, QueuedWrite, Urgency};
use crate::store::db::{Conn, connect};

/// Most writes in one transaction.
const BATCH: usize = 256;
/// How long to wait before records that failed are tried again.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// How often records are tried again when the scheduler closes.
const LAST_ATTEMPTS: u32 = 3;
/// How often a transaction is repeated after conflicts with other transactions.
const CONFLICTS: u32 = 10;

/// The task's state.
pub(crate) struct Writer {
    /// `None` after the connection was lost.
    conn: Option<Conn>,
    core: Arc<Core>,
    messages: mpsc::UnboundedReceiver<Message>,
    /// Notes that wait for another write, or what is tried again.
    batch: Vec<Box<dyn QueuedWrite>>,
    failures: u32,
    closed: Option<oneshot::Sender<()>>,
    /// Keeps other processes from the database file.
    guard: Option<File>,
}

impl Writer {
    pub(crate) fn new(
        conn: Conn,
        core: Arc<Core>,
        messages: mpsc::UnboundedReceiver<Message>,
        guard: Option<File>,
    ) -> Self {
        Self { conn: Some(conn), core, messages, batch: Vec::new(), failures: 0, closed: None, guard }
    }

    /// Writes until the last sender is gone or the scheduler closes.
    pub(crate) async fn run(mut self) {
        while self.gather().await {
            #[cfg(test)]
            if self.core.killed.load(std::sync::atomic::Ordering::SeqCst) {
                break;
            }
            self.commit().await;
        }
        self.core.readers.close().await;
        if let Some(Err(error)) = match self.conn {
            Some(conn) => Some(conn.close().await),
            None => None,
        } {
            tracing::warn!(%error, "the database did not close cleanly");
        }
        drop(self.guard);
        if let Some(closed) = self.closed {
            let _ = closed.send(());
        }
    }

    /// Waits for something to write; false when nothing will come any more.
    async fn gather(&mut self) -> bool {
        if self.failures > 0 {
            if self.messages.is_closed() && self.failures > LAST_ATTEMPTS {
                tracing::error!(records = self.batch.len(), "records could not be written; a restart repeats the work");
                return false;
            }
            tokio::time::sleep(RETRY_DELAY).await;
        } else {
            while self.only_notes() {
                match self.messages.recv().await {
                    Some(message) => self.receive(message),
                    None => return !self.batch.is_empty(),
                }
            }
        }
        while self.batch.len() < BATCH {
            let Ok(message) = self.messages.try_recv() else { break };
            self.receive(message);
        }
        self.batch.sort_by_key(|write| write.urgency() != Urgency::Call || write.joins(&self.core).is_none());
        true
    }

    fn receive(&mut self, message: Message) {
        match message {
            Message::Write(write) => self.batch.push(write),
            Message::Close(closed) => {
                self.messages.close();
                self.closed = Some(closed);
            }
        }
    }

    fn only_notes(&self) -> bool {
        self.batch.iter().all(|write| write.urgency() == Urgency::Note)
    }

    async fn commit(&mut self) {
        let mut batch = std::mem::take(&mut self.batch);
        match self.prepare_and_write(&mut batch).await {
            Ok(()) => self.settle(batch),
            // One of them is to blame; PostgreSQL does not go on after an error as SQLite does.
            Err(error) if batch.len() > 1 && !fails_all(&error) => self.commit_each(batch).await,
            Err(error) => self.keep_for_retry(batch, &error),
        }
    }

    /// Each in a transaction of its own, in order, until a record fails.
    async fn commit_each(&mut self, batch: Vec<Box<dyn QueuedWrite>>) {
        let mut writes = batch.into_iter();
        for write in writes.by_ref() {
            let mut one = vec![write];
            match self.prepare_and_write(&mut one).await {
                Ok(()) => self.settle(one),
                Err(error) => {
                    self.keep_for_retry(one, &error);
                    if !self.batch.is_empty() {
                        break;
                    }
                }
            }
        }
        self.batch.extend(writes);
    }

    fn settle(&mut self, batch: Vec<Box<dyn QueuedWrite>>) {
        self.failures = 0;
        self.core.metrics.transactions.inc();
        self.core.metrics.writes.inc_by(batch.len() as u64);
        for write in batch {
            write.settle(None, &self.core);
        }
    }

    /// Keeps what is tried again, and answers the callers of the rest with the error.
    fn keep_for_retry(&mut self, batch: Vec<Box<dyn QueuedWrite>>, error: &Error) {
        let retry_calls = matches!(error, Error::Unavailable(_)) && !self.messages.is_closed();
        for write in batch {
            let retried = write.urgency() != Urgency::Call || (retry_calls && !write.is_overdue());
            if retried { self.batch.push(write) } else { write.settle(Some(error.clone()), &self.core) }
        }
        self.failures = if self.only_notes() { 0 } else { self.failures.saturating_add(1) };
    }

    async fn prepare_and_write(&mut self, batch: &mut [Box<dyn QueuedWrite>]) -> Result<(), Error> {
        for prepared in join_all(batch.iter_mut().map(|write| write.prepare(&self.core))).await {
            prepared?;
        }
        self.write_batch(batch).await
    }

    /// Writes all in one transaction, or nothing; repeated when others' changes are in the way.
    async fn write_batch(&mut self, batch: &mut [Box<dyn QueuedWrite>]) -> Result<(), Error> {
        let mut conflicts = 0;
        loop {
            let mut conn = match self.conn.take() {
                Some(conn) => conn,
                None => connect(&self.core.options.database).await?,
            };
            match transact(&mut conn, &self.core, batch).await {
                Err(error @ Error::Unavailable(_)) => return Err(error),
                Err(Error::Conflict(doing)) if conflicts < CONFLICTS => {
                    conflicts += 1;
                    self.core.metrics.conflicts.inc();
                    tracing::debug!(doing, conflicts, "retrying transaction after a conflict");
                    self.conn = Some(conn);
                    tokio::time::sleep(self.core.jitter(Duration::from_millis(4 << conflicts.min(6)))).await;
                }
                done => {
                    self.conn = Some(conn);
                    return done;
                }
            }
        }
    }
}

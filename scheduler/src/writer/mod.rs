//! The only task of a process that writes: it applies all queued writes in one transaction, commits once, then answers
//! all callers.

pub(crate) mod audit;
mod inbox;
mod refusals;
mod transaction;
pub(crate) mod write;

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use self::inbox::Inbox;
use self::transaction::{fails_all, transact};
use crate::Error;
use crate::context::core::{Core, Message, QueuedWrite, Urgency};
use crate::store::db::{Conn, RowScope, connect};
use crate::store::failed;

/// Maximum number of rows that the writes of one transaction concern; most writes concern one.
const BATCH: usize = 256;
/// Pause before failed records are tried again.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// Number of attempts for records when the scheduler closes.
const LAST_ATTEMPTS: u32 = 3;
/// Number of times that a transaction is repeated after conflicts with other transactions.
const CONFLICTS: u32 = 10;

/// State of the writing task.
pub(crate) struct Writer {
    /// Connection; `None` after it was lost.
    conn: Option<Conn>,
    core: Arc<Core>,
    messages: mpsc::UnboundedReceiver<Message>,
    inbox: Inbox,
    /// Notes that wait for another write, and writes to be repeated.
    batch: Vec<Box<dyn QueuedWrite>>,
    failures: u32,
    closed: Option<oneshot::Sender<()>>,
    /// Lock that keeps other processes from the database file.
    guard: Option<File>,
}

impl Writer {
    pub(crate) fn new(
        conn: Conn,
        core: Arc<Core>,
        messages: mpsc::UnboundedReceiver<Message>,
        guard: Option<File>,
    ) -> Self {
        Self {
            conn: Some(conn),
            core,
            messages,
            inbox: Inbox::default(),
            batch: Vec::new(),
            failures: 0,
            closed: None,
            guard,
        }
    }

    /// Writes until the last sender is dropped or the scheduler closes.
    pub(crate) async fn run(mut self) {
        while self.gather().await {
            #[cfg(test)]
            if self.core.is_killed() {
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

    /// Waits for something to write. Returns false at the end of all writes.
    async fn gather(&mut self) -> bool {
        if self.failures > 0 {
            if self.messages.is_closed() && self.failures > LAST_ATTEMPTS {
                tracing::error!(records = self.batch.len(), "records could not be written; a restart repeats the work");
                return false;
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
        loop {
            while let Ok(message) = self.messages.try_recv() {
                self.receive(message);
            }
            self.inbox.take(&mut self.batch, BATCH);
            // Their callers have been answered.
            for overdue in self.batch.extract_if(.., |write| write.is_overdue()) {
                overdue.settle(Some(Error::Unavailable("write")), &self.core);
            }
            if !self.only_notes() {
                break;
            }
            if !self.wait().await {
                if !self.inbox.is_empty() {
                    tracing::error!("records could not be prepared; a restart repeats the work");
                }
                return !self.batch.is_empty();
            }
        }
        self.batch.sort_by_key(|write| write.urgency() != Urgency::Call || write.joins(&self.core).is_none());
        true
    }

    /// Waits for a message, or until a write has been prepared. Returns false when both have ended.
    async fn wait(&mut self) -> bool {
        tokio::select! {
            message = self.messages.recv() => match message {
                Some(message) => self.receive(message),
                None => return self.inbox.prepared().await,
            },
            _ = self.inbox.prepared(), if self.inbox.is_preparing() => {}
        }
        true
    }

    fn receive(&mut self, message: Message) {
        match message {
            Message::Write(write) => self.inbox.push(write, &self.core),
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
        match self.write_batch(&mut batch).await {
            Ok(began) => self.settle(batch, began),
            // One of the writes is to blame. Unlike SQLite, PostgreSQL does not continue after an error.
            Err(error) if batch.len() > 1 && !fails_all(&error) => self.commit_each(batch).await,
            Err(error) => self.keep_for_retry(batch, &error).await,
        }
    }

    /// Commits each write in a transaction of its own, in order, until a record fails.
    async fn commit_each(&mut self, batch: Vec<Box<dyn QueuedWrite>>) {
        let mut writes = batch.into_iter();
        for write in writes.by_ref() {
            let mut one = vec![write];
            match self.write_batch(&mut one).await {
                Ok(began) => self.settle(one, began),
                Err(error) => {
                    self.keep_for_retry(one, &error).await;
                    if !self.batch.is_empty() {
                        break;
                    }
                }
            }
        }
        self.batch.extend(writes);
    }

    /// Answers the callers of a batch that was committed just now in a transaction that began at `began`.
    fn settle(&mut self, batch: Vec<Box<dyn QueuedWrite>>, began: Instant) {
        self.failures = 0;
        let metrics = &self.core.metrics;
        metrics.transactions.inc();
        metrics.writes.inc_by(batch.len() as u64);
        metrics.store.transacted(began.elapsed(), batch.len());
        // Notes wait deliberately.
        for write in batch.iter().filter(|write| write.urgency() != Urgency::Note) {
            metrics.store.waited(began.saturating_duration_since(write.sent_at()));
        }
        for write in batch {
            write.settle(None, &self.core);
        }
    }

    /// Keeps the writes that will be repeated, and answers the callers of the others with the error.
    async fn keep_for_retry(&mut self, mut batch: Vec<Box<dyn QueuedWrite>>, error: &Error) {
        if self.is_at_fault(&mut batch, error).await {
            return batch.into_iter().for_each(|write| self.give_up(write, error));
        }
        let retry_calls = matches!(error, Error::Unavailable(_)) && !self.messages.is_closed();
        for write in batch {
            let retried = write.urgency() != Urgency::Call || (retry_calls && !write.is_overdue());
            if retried { self.batch.push(write) } else { write.settle(Some(error.clone()), &self.core) }
        }
        let patient = self.only_notes() && !self.messages.is_closed();
        self.failures = if patient { 0 } else { self.failures.saturating_add(1) };
    }

    /// Writes all in one transaction, or nothing. Repeated if changes by others conflict. Returns the time when the
    /// transaction began.
    async fn write_batch(&mut self, batch: &mut [Box<dyn QueuedWrite>]) -> Result<Instant, Error> {
        let done = self.attempt_batch(batch).await;
        if let Err(error) = &done {
            self.core.metrics.store.failed(error);
            if matches!(error, Error::Unavailable(_)) {
                self.core.readers.suspect();
            }
        }
        done
    }

    async fn attempt_batch(&mut self, batch: &mut [Box<dyn QueuedWrite>]) -> Result<Instant, Error> {
        let mut conflicts = 0;
        loop {
            let began = Instant::now();
            let scope = batch.first().map_or(RowScope::System, |write| write.scope());
            let mut conn = self.begin(&scope).await?;
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
                    return done.map(|()| began);
                }
            }
        }
    }

    /// Returns a connection with an open transaction in a scope. The previous connection may have been lost while it
    /// was idle: then a new one is opened at once.
    async fn begin(&mut self, scope: &RowScope) -> Result<Conn, Error> {
        if self.core.is_outdated() {
            return Err(Error::Unavailable("write"));
        }
        if let Some(mut conn) = self.conn.take() {
            match conn.begin_in(scope).await.map_err(failed("write")) {
                Err(Error::Unavailable(_)) => {}
                done => return done.map(|()| conn),
            }
        }
        let mut conn = connect(&self.core.options.database).await.map_err(|error| match error {
            // TLS worked at the start, so it may work again, for example after a renewal of the certificate.
            Error::Tls(reason) => {
                tracing::warn!(reason, "the database can't be reached: TLS failed");
                Error::Unavailable("write")
            }
            error => error,
        })?;
        conn.begin_in(scope).await.map_err(failed("write"))?;
        Ok(conn)
    }
}

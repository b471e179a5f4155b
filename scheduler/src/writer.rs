//! The one task that writes: it applies what has queued up in one transaction, commits once, then
//! answers everyone.

use std::fs::File;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sqlx::{Connection, SqliteConnection};
use tokio::sync::{mpsc, oneshot};

use crate::Error;
use crate::core::Core;
use crate::store::failed;

/// Most writes in one transaction.
const BATCH: usize = 256;
/// How long to wait before records that failed are tried again.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// How often records are tried again when the scheduler closes.
const LAST_ATTEMPTS: u32 = 3;

/// What a write is to the one who sent it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Someone waits for the answer and is told when it fails.
    Call,
    /// It records what has already happened: it is tried until it succeeds, in order.
    Record,
    /// A record that nobody waits for: it is written together with the next write that is not a note.
    Note,
}

/// A change of the store.
pub(crate) trait Write: Send + 'static {
    /// What the caller is told.
    type Output: Send + 'static;
    /// See [`Urgency`].
    const URGENCY: Urgency = Urgency::Call;
    /// Whether a change that fails may have been made in part, so that it has to be undone.
    const UNDO: bool = true;

    /// Makes the change. It may be undone and applied again, so it leaves memory alone.
    fn apply(
        &mut self,
        conn: &mut SqliteConnection,
        core: &Core,
    ) -> impl Future<Output = Result<Self::Output, Error>> + Send;

    /// Follows the change in memory, after the commit, in the order of the writes.
    fn committed(&mut self, _output: &Self::Output, _core: &Arc<Core>) {}
}

/// What the writer receives.
pub(crate) enum Message {
    /// Something to write.
    Write(Box<dyn Job>),
    /// Write what has been received, then stop.
    Close(oneshot::Sender<()>),
}

impl Message {
    /// A write without anyone to answer.
    pub(crate) fn record<W: Write>(write: W) -> Self {
        Self::Write(Box::new(Queued { write, output: None, reply: None }))
    }

    /// A write and where its answer will come.
    pub(crate) fn call<W: Write>(write: W) -> (Self, oneshot::Receiver<Result<W::Output, Error>>) {
        let (reply, answer) = oneshot::channel();
        (Self::Write(Box::new(Queued { write, output: None, reply: Some(reply) })), answer)
    }
}

type Applied<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

/// A [`Write`] of any type.
pub(crate) trait Job: Send {
    fn urgency(&self) -> Urgency;
    /// Whether it is to be undone alone when it fails. What can't fail alone needs no savepoint.
    fn undo(&self) -> bool;
    fn apply<'a>(&'a mut self, conn: &'a mut SqliteConnection, core: &'a Core) -> Applied<'a>;
    /// The transaction was committed, or failed with this.
    fn settle(self: Box<Self>, failure: Option<Error>, core: &Arc<Core>);
}

struct Queued<W: Write> {
    write: W,
    output: Option<Result<W::Output, Error>>,
    reply: Option<oneshot::Sender<Result<W::Output, Error>>>,
}

impl<W: Write> Job for Queued<W> {
    fn urgency(&self) -> Urgency {
        W::URGENCY
    }

    fn undo(&self) -> bool {
        W::URGENCY == Urgency::Call && W::UNDO
    }

    fn apply<'a>(&'a mut self, conn: &'a mut SqliteConnection, core: &'a Core) -> Applied<'a> {
        Box::pin(async move {
            let output = self.write.apply(conn, core).await;
            let done = output.as_ref().map(|_| ()).map_err(Clone::clone);
            self.output = Some(output);
            done
        })
    }

    fn settle(mut self: Box<Self>, failure: Option<Error>, core: &Arc<Core>) {
        let output = match failure {
            Some(error) => Err(error),
            None => self.output.take().unwrap_or(Err(Error::Store("write"))),
        };
        if let Ok(value) = &output {
            self.write.committed(value, core);
        }
        if let Some(reply) = self.reply.take() {
            // The caller may have gone; the write stands.
            let _ = reply.send(output);
        }
    }
}

/// The task's state.
pub(crate) struct Writer {
    conn: SqliteConnection,
    core: Arc<Core>,
    messages: mpsc::UnboundedReceiver<Message>,
    /// Notes that wait for company, or records to try again.
    batch: Vec<Box<dyn Job>>,
    failures: u32,
    closed: Option<oneshot::Sender<()>>,
    /// Keeps other processes from the database.
    guard: File,
}

impl Writer {
    pub(crate) fn new(
        conn: SqliteConnection,
        core: Arc<Core>,
        messages: mpsc::UnboundedReceiver<Message>,
        guard: File,
    ) -> Self {
        Self { conn, core, messages, batch: Vec::new(), failures: 0, closed: None, guard }
    }

    /// Writes until the last sender is gone or the scheduler closes.
    pub(crate) async fn run(mut self) {
        while self.gather().await {
            #[cfg(test)]
            if self.core.killed.load(Ordering::SeqCst) {
                break;
            }
            self.commit().await;
        }
        self.core.readers.close().await;
        if let Err(error) = self.conn.close().await {
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
        true
    }

    fn receive(&mut self, message: Message) {
        match message {
            Message::Write(job) => self.batch.push(job),
            Message::Close(closed) => {
                self.messages.close();
                self.closed = Some(closed);
            }
        }
    }

    fn only_notes(&self) -> bool {
        self.batch.iter().all(|job| job.urgency() == Urgency::Note)
    }

    async fn commit(&mut self) {
        let mut batch = std::mem::take(&mut self.batch);
        let writes = batch.len() as u64;
        match self.transact(&mut batch).await {
            Ok(()) => {
                self.failures = 0;
                self.core.transactions.fetch_add(1, Ordering::Relaxed);
                self.core.writes.fetch_add(writes, Ordering::Relaxed);
                for job in batch {
                    job.settle(None, &self.core);
                }
            }
            Err(error) => {
                for job in batch {
                    match job.urgency() {
                        Urgency::Call => job.settle(Some(error.clone()), &self.core),
                        Urgency::Record | Urgency::Note => self.batch.push(job),
                    }
                }
                self.failures = if self.only_notes() { 0 } else { self.failures.saturating_add(1) };
            }
        }
    }

    /// All in one transaction, or nothing.
    async fn transact(&mut self, batch: &mut [Box<dyn Job>]) -> Result<(), Error> {
        execute(&mut self.conn, "BEGIN IMMEDIATE").await?;
        let mut done = apply_all(&mut self.conn, &self.core, batch).await;
        if done.is_ok() {
            done = execute(&mut self.conn, "COMMIT").await;
        }
        if done.is_err() {
            // After some errors SQLite has rolled back already, and says so.
            let _ = sqlx::query("ROLLBACK").execute(&mut self.conn).await;
        }
        done
    }
}

/// Applies each write so that one failure does not fail its neighbours, in a savepoint where that takes one. A
/// record that fails fails them all: what comes after it must not become durable before it.
async fn apply_all(conn: &mut SqliteConnection, core: &Core, batch: &mut [Box<dyn Job>]) -> Result<(), Error> {
    for job in batch {
        let undo = job.undo();
        if undo {
            execute(conn, "SAVEPOINT one").await?;
        }
        if let Err(error) = job.apply(conn, core).await {
            if job.urgency() != Urgency::Call {
                return Err(error);
            }
            if undo {
                execute(conn, "ROLLBACK TO one").await?;
            }
        }
        if undo {
            execute(conn, "RELEASE one").await?;
        }
    }
    Ok(())
}

async fn execute(conn: &mut SqliteConnection, sql: &'static str) -> Result<(), Error> {
    sqlx::query(sql).execute(conn).await.map_err(failed("write"))?;
    Ok(())
}

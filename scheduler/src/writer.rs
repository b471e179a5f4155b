//! The one task of a process that writes: it applies what has queued up in one transaction, commits once, then
//! answers everyone.

use std::any::{Any, TypeId};
use std::collections::BTreeSet;
use std::fs::File;
use std::future::Future;
use std::iter;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::Error;
use crate::core::Core;
use crate::signals::{self, Signal};
use crate::store::db::{Conn, Dialect, connect, sql};
use crate::store::{failed, quotas};

/// Most writes in one transaction.
const BATCH: usize = 256;
/// How long to wait before records that failed are tried again.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// How often records are tried again when the scheduler closes.
const LAST_ATTEMPTS: u32 = 3;
/// How often a transaction is repeated that others' changes were in the way of.
const CONFLICTS: u32 = 10;
/// How long a caller waits for a database that can't be reached.
const PATIENCE: Duration = Duration::from_secs(20);

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

    /// The tenants whose present use the change depends on, or notes; nobody else may change that meanwhile.
    fn counts(&self, _core: &Core) -> Vec<String> {
        Vec::new()
    }

    /// Whether [`Self::apply_all`] makes it together with others of its type that stand beside it. A call that joins is
    /// made before all that does not: nobody has an answer yet, so that no order was promised.
    fn joins(&self, _core: &Core) -> bool {
        false
    }

    /// Makes several changes that join, in their order; what became of each, or why none could be made.
    fn apply_all(
        writes: Vec<&mut Self>,
        conn: &mut Conn,
        core: &Core,
    ) -> impl Future<Output = Result<Vec<Result<Self::Output, Error>>, Error>> + Send {
        async move {
            let mut outputs = Vec::with_capacity(writes.len());
            for write in writes {
                outputs.push(write.apply(conn, core).await);
            }
            Ok(outputs)
        }
    }

    /// What is done before the transaction, because it takes long and needs none. It may be done again, also after
    /// the change was made.
    fn prepare(&mut self, _core: &Core) -> impl Future<Output = Result<(), Error>> + Send {
        async { Ok(()) }
    }

    /// Makes the change. It may be undone and applied again, even after a commit of which nobody heard; so it
    /// leaves memory alone and takes its own traces for success.
    fn apply(&mut self, conn: &mut Conn, core: &Core) -> impl Future<Output = Result<Self::Output, Error>> + Send;

    /// What other processes have to know of the change.
    fn signals(&self, _output: &Self::Output, _signals: &mut Vec<Signal>) {}

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
        Self::Write(Box::new(Queued { write, output: None, reply: None, since: Instant::now() }))
    }

    /// A write and where its answer will come.
    pub(crate) fn call<W: Write>(write: W) -> (Self, oneshot::Receiver<Result<W::Output, Error>>) {
        let (reply, answer) = oneshot::channel();
        (Self::Write(Box::new(Queued { write, output: None, reply: Some(reply), since: Instant::now() })), answer)
    }
}

/// What became of writes, one by one.
type Done = Vec<Result<(), Error>>;

type Step<'a, T = ()> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// A [`Write`] of any type.
pub(crate) trait Job: Send {
    fn urgency(&self) -> Urgency;
    /// Whether it is to be undone alone when it fails. What can't fail alone needs no savepoint.
    fn undo(&self) -> bool;
    /// Whether its caller has waited long enough.
    fn is_overdue(&self) -> bool;
    /// See [`Write::counts`].
    fn counts(&self, core: &Core) -> Vec<String>;
    /// See [`Write::prepare`].
    fn prepare<'a>(&'a mut self, core: &'a Core) -> Step<'a>;
    fn apply<'a>(&'a mut self, conn: &'a mut Conn, core: &'a Core) -> Step<'a>;
    /// The type of what it joins, if it joins anything.
    fn joins(&self, core: &Core) -> Option<TypeId>;
    fn as_any(&mut self) -> &mut (dyn Any + Send);
    /// Applies it and those after it, all of the type that it joins.
    fn apply_with<'a>(
        &'a mut self,
        others: &'a mut [Box<dyn Job>],
        conn: &'a mut Conn,
        core: &'a Core,
    ) -> Step<'a, Done>;
    /// What other processes have to know, once it was applied.
    fn signals(&self, signals: &mut Vec<Signal>);
    /// The transaction was committed, or failed with this.
    fn settle(self: Box<Self>, failure: Option<Error>, core: &Arc<Core>);
}

struct Queued<W: Write> {
    write: W,
    output: Option<Result<W::Output, Error>>,
    reply: Option<oneshot::Sender<Result<W::Output, Error>>>,
    since: Instant,
}

impl<W: Write> Job for Queued<W> {
    fn urgency(&self) -> Urgency {
        W::URGENCY
    }

    fn undo(&self) -> bool {
        W::URGENCY == Urgency::Call && W::UNDO
    }

    fn is_overdue(&self) -> bool {
        W::URGENCY == Urgency::Call && self.since.elapsed() > PATIENCE
    }

    fn counts(&self, core: &Core) -> Vec<String> {
        self.write.counts(core)
    }

    fn prepare<'a>(&'a mut self, core: &'a Core) -> Step<'a> {
        Box::pin(self.write.prepare(core))
    }

    fn apply<'a>(&'a mut self, conn: &'a mut Conn, core: &'a Core) -> Step<'a> {
        Box::pin(async move {
            let output = self.write.apply(conn, core).await;
            let done = output.as_ref().map(|_| ()).map_err(Clone::clone);
            self.output = Some(output);
            done
        })
    }

    fn joins(&self, core: &Core) -> Option<TypeId> {
        self.write.joins(core).then(TypeId::of::<Self>)
    }

    fn as_any(&mut self) -> &mut (dyn Any + Send) {
        self
    }

    fn apply_with<'a>(
        &'a mut self,
        others: &'a mut [Box<dyn Job>],
        conn: &'a mut Conn,
        core: &'a Core,
    ) -> Step<'a, Done> {
        Box::pin(async move {
            let others = others.iter_mut().filter_map(|job| job.as_any().downcast_mut::<Self>());
            let (writes, places): (Vec<_>, Vec<_>) =
                iter::once(self).chain(others).map(|job| (&mut job.write, &mut job.output)).unzip();
            let outputs = W::apply_all(writes, conn, core).await?;
            let done = outputs.iter().map(|output| output.as_ref().map(drop).map_err(Clone::clone)).collect();
            for (place, output) in places.into_iter().zip(outputs) {
                *place = Some(output);
            }
            Ok(done)
        })
    }

    fn signals(&self, signals: &mut Vec<Signal>) {
        if let Some(Ok(output)) = &self.output {
            self.write.signals(output, signals);
        }
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

/// Whether an error concerns the transaction, and not the one write that met it.
fn fails_all(error: &Error) -> bool {
    matches!(error, Error::Unavailable(_) | Error::Conflict(_))
}

/// The task's state.
pub(crate) struct Writer {
    /// `None` after the connection was lost.
    conn: Option<Conn>,
    core: Arc<Core>,
    messages: mpsc::UnboundedReceiver<Message>,
    /// Notes that wait for company, or what is to be tried again.
    batch: Vec<Box<dyn Job>>,
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
        self.batch.sort_by_key(|job| job.urgency() != Urgency::Call || job.joins(&self.core).is_none());
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
        match self.prepare_and_write(&mut batch).await {
            Ok(()) => self.settle(batch),
            // One of them is to blame; PostgreSQL does not go on after an error as SQLite does.
            Err(error) if batch.len() > 1 && !fails_all(&error) => self.commit_each(batch).await,
            Err(error) => self.keep(batch, &error),
        }
    }

    /// Each in a transaction of its own, in order, until a record fails.
    async fn commit_each(&mut self, batch: Vec<Box<dyn Job>>) {
        let mut jobs = batch.into_iter();
        for job in jobs.by_ref() {
            let mut one = vec![job];
            match self.prepare_and_write(&mut one).await {
                Ok(()) => self.settle(one),
                Err(error) => {
                    self.keep(one, &error);
                    if !self.batch.is_empty() {
                        break;
                    }
                }
            }
        }
        self.batch.extend(jobs);
    }

    fn settle(&mut self, batch: Vec<Box<dyn Job>>) {
        self.failures = 0;
        self.core.metrics.transactions.inc();
        self.core.metrics.writes.inc_by(batch.len() as u64);
        for job in batch {
            job.settle(None, &self.core);
        }
    }

    /// Keeps what is to be tried again, and tells the callers of the rest.
    fn keep(&mut self, batch: Vec<Box<dyn Job>>, error: &Error) {
        let patient = matches!(error, Error::Unavailable(_)) && !self.messages.is_closed();
        for job in batch {
            let retried = job.urgency() != Urgency::Call || (patient && !job.is_overdue());
            if retried { self.batch.push(job) } else { job.settle(Some(error.clone()), &self.core) }
        }
        self.failures = if self.only_notes() { 0 } else { self.failures.saturating_add(1) };
    }

    async fn prepare_and_write(&mut self, batch: &mut [Box<dyn Job>]) -> Result<(), Error> {
        for prepared in join_all(batch.iter_mut().map(|job| job.prepare(&self.core))).await {
            prepared?;
        }
        self.write(batch).await
    }

    /// Writes all in one transaction, or nothing; repeated when others' changes are in the way.
    async fn write(&mut self, batch: &mut [Box<dyn Job>]) -> Result<(), Error> {
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
                    tracing::debug!(doing, conflicts, "a transaction is repeated");
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

async fn transact(conn: &mut Conn, core: &Core, batch: &mut [Box<dyn Job>]) -> Result<(), Error> {
    conn.begin().await.map_err(failed("write"))?;
    let tenants: BTreeSet<String> = batch.iter().flat_map(|job| job.counts(core)).collect();
    let mut done = quotas::lock_tenants(conn, tenants.into_iter().collect()).await;
    if done.is_ok() {
        done = apply_all(conn, core, batch).await;
    }
    if done.is_ok() {
        let mut signals = Vec::new();
        batch.iter().for_each(|job| job.signals(&mut signals));
        done = notify(conn, core, &signals).await;
    }
    if done.is_ok() {
        done = conn.commit().await.map_err(failed("write"));
    }
    if done.is_err() {
        // After some errors SQLite has rolled back already, and says so.
        let _ = conn.rollback().await;
    }
    done
}

/// Applies each write so that one failure does not fail its neighbours, in a savepoint where that takes one; those that
/// join at once. A record that fails fails them all: what comes after it must not become durable before it.
async fn apply_all(conn: &mut Conn, core: &Core, batch: &mut [Box<dyn Job>]) -> Result<(), Error> {
    let mut left = batch;
    while let Some((job, others)) = left.split_first_mut() {
        let group = job.joins(core);
        let joined =
            if group.is_some() { others.iter().take_while(|other| other.joins(core) == group).count() } else { 0 };
        let (others, rest) = others.split_at_mut(joined);
        left = rest;
        if joined > 0 {
            apply_group(conn, core, job.as_mut(), others).await?;
        } else {
            apply_one(conn, core, job.as_mut()).await?;
        }
    }
    Ok(())
}

async fn apply_one(conn: &mut Conn, core: &Core, job: &mut dyn Job) -> Result<(), Error> {
    let undo = job.undo();
    if undo {
        execute(conn, "SAVEPOINT one").await?;
    }
    if let Err(error) = job.apply(conn, core).await {
        if job.urgency() != Urgency::Call || fails_all(&error) {
            return Err(error);
        }
        // PostgreSQL does not go on after an error of its own, and would call the end of the transaction a success.
        if !undo && is_of_statement(&error) && conn.dialect() == Dialect::Postgres {
            return Err(error);
        }
        if undo {
            execute(conn, "ROLLBACK TO SAVEPOINT one").await?;
        }
    }
    if undo {
        execute(conn, "RELEASE SAVEPOINT one").await?;
    }
    Ok(())
}

/// Writes that join. What fails for one of them may be a failure of all: then they are written one by one.
async fn apply_group(
    conn: &mut Conn,
    core: &Core,
    job: &mut dyn Job,
    others: &mut [Box<dyn Job>],
) -> Result<(), Error> {
    let urgency = job.urgency();
    for done in job.apply_with(others, conn, core).await? {
        match done {
            Err(error) if urgency != Urgency::Call || fails_all(&error) || is_of_statement(&error) => {
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether the database may have refused a statement.
fn is_of_statement(error: &Error) -> bool {
    matches!(error, Error::Store(_) | Error::Invalid(_))
}

/// Tells other processes, should the transaction be committed.
async fn notify(conn: &mut Conn, core: &Core, signals: &[Signal]) -> Result<(), Error> {
    const SQL: &str = "-- notify
        SELECT pg_notify($1, $2)";
    if conn.dialect() == Dialect::Sqlite {
        return Ok(());
    }
    for text in signals::encode(&core.process, signals) {
        sql(SQL).bind(signals::CHANNEL).bind(text).execute(conn).await.map_err(failed("notify other processes"))?;
    }
    Ok(())
}

async fn execute(conn: &mut Conn, text: &'static str) -> Result<(), Error> {
    sql(text).execute(conn).await.map(drop).map_err(failed("write"))
}

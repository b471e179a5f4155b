//! Changes of the store, and their way to the writer.

use std::any::{Any, TypeId};
use std::future::Future;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use trainyard_protocol::SessionId;

use crate::Error;
use crate::context::core::{Core, Message, QueuedWrite, Subject, Urgency, WriteResults, WriteStep};
use crate::processes::signals::Signal;
use crate::store::db::{Conn, RowScope};

/// Longest time that a caller waits for a database that can't be reached, or does not answer. It suffices to detect a
/// lost connection and to open another. The time of earlier reads is added; together they stay below the 20 s in
/// docs/operators/operations.md.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// A change of the store.
pub(crate) trait Write: Send + 'static {
    /// Result of the change.
    type Output: Send + 'static;
    /// Urgency of the change: [`Urgency`].
    const URGENCY: Urgency = Urgency::Call;
    /// Whether a failed change may have been made in part, so that it must be undone.
    const UNDO: bool = true;

    /// Returns the scope of rows that the change sees and makes. Rows of others are read after entering another scope.
    fn scope(&self) -> RowScope;

    /// Returns the tenants whose present usage the change depends on or changes; no other transaction may change it in
    /// the meantime.
    fn counts(&self, _core: &Core) -> Vec<String> {
        Vec::new()
    }

    /// Returns the sessions whose samples the change may start or end. They are locked before the transaction changes
    /// anything, in the order of their names: ends of samples are numbered one after the other, and no two transactions
    /// wait for each other's rows.
    fn sessions(&self) -> Vec<SessionId> {
        Vec::new()
    }

    /// Returns about how many rows the change concerns, if they may be many: a transaction is bounded by their number.
    fn rows(&self) -> usize {
        1
    }

    /// Returns whether [`Self::apply_all`] makes the change together with neighbours of its type. A call that joins is
    /// made before all calls that do not: no caller has an answer yet, so no order was promised.
    fn joins(&self, _core: &Core) -> bool {
        false
    }

    /// Makes several changes that join, in their order. Returns the result of each, or the error because of which none
    /// could be made.
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

    /// Returns the subjects of the change, which matter if it, or another write about them, is prepared.
    fn subjects(&self) -> Vec<Subject> {
        Vec::new()
    }

    /// Returns whether the change can be applied at once. Otherwise it is first prepared, beside other writes.
    fn is_ready(&mut self) -> bool {
        true
    }

    /// Does slow work before the transaction. A record repeats it until it succeeds.
    fn prepare(&mut self, _core: &Core) -> impl Future<Output = Result<(), Error>> + Send {
        async { Ok(()) }
    }

    /// Makes the change. It may be undone and applied again, even after a commit whose answer was lost. So it must not
    /// change memory, and must accept its own traces as success.
    fn apply(&mut self, conn: &mut Conn, core: &Core) -> impl Future<Output = Result<Self::Output, Error>> + Send;

    /// Replaces the content of a record that the database refuses with less content: only that something failed. Returns false
    /// if nothing can be left out.
    fn simplify(&mut self) -> bool {
        false
    }

    /// Applies in memory that the record was given up, because the database refuses it.
    fn abandoned(&mut self, _core: &Arc<Core>) {}

    /// Adds signals about the change for other processes.
    fn signals(&self, _output: &Self::Output, _signals: &mut Vec<Signal>) {}

    /// Applies the change in memory after the commit, in the order of the writes.
    fn committed(&mut self, _output: &Self::Output, _core: &Arc<Core>) {}
}

impl Core {
    /// Makes a change durable and returns its result.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the database does not answer in time. Then the change may have been made, as with any
    /// commit whose answer is lost.
    pub(crate) async fn call<W: Write>(&self, write: W) -> Result<W::Output, Error> {
        const CLOSED: Error = Error::Store("write to a closed store");
        let messages = self.messages().ok_or(CLOSED)?;
        let (reply, answer) = oneshot::channel();
        messages.send(Message::Write(Sent::boxed(write, Some(reply), self))).map_err(|_| CLOSED)?;
        drop(messages);
        match timeout(CALL_TIMEOUT, answer).await {
            Ok(answer) => answer.unwrap_or(Err(CLOSED)),
            Err(_) => Err(Error::Unavailable("write")),
        }
    }

    /// Sends a record to the writer. If the scheduler has closed, a restart finds the same change again.
    pub(crate) fn record<W: Write>(&self, write: W) {
        if let Some(messages) = self.messages() {
            let _ = messages.send(Message::Write(Sent::boxed(write, None, self)));
        }
    }
}

type Reply<W> = oneshot::Sender<Result<<W as Write>::Output, Error>>;

/// A write that was sent to the writer.
struct Sent<W: Write> {
    write: W,
    output: Option<Result<W::Output, Error>>,
    reply: Option<Reply<W>>,
    since: Instant,
    /// Number of times that the database refused this write alone.
    refusals: u32,
    _queued: Queued,
}

/// Counts a write as long as the value exists.
struct Queued(Gauge);

impl Queued {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl<W: Write> Sent<W> {
    fn boxed(write: W, reply: Option<Reply<W>>, core: &Core) -> Box<dyn QueuedWrite> {
        let queued = Queued::new(&core.metrics.store.queued);
        Box::new(Self { write, output: None, reply, since: Instant::now(), refusals: 0, _queued: queued })
    }
}

impl<W: Write> QueuedWrite for Sent<W> {
    fn urgency(&self) -> Urgency {
        W::URGENCY
    }

    fn scope(&self) -> RowScope {
        self.write.scope()
    }

    fn undo(&self) -> bool {
        W::URGENCY == Urgency::Call && W::UNDO
    }

    fn is_overdue(&self) -> bool {
        W::URGENCY == Urgency::Call && self.since.elapsed() > CALL_TIMEOUT
    }

    fn rows(&self) -> usize {
        self.write.rows()
    }

    fn sent_at(&self) -> Instant {
        self.since
    }

    fn locks(&self, core: &Core) -> Vec<String> {
        let sessions = self.write.sessions().into_iter().map(|session| session.to_string());
        self.write.counts(core).into_iter().chain(sessions).collect()
    }

    fn subjects(&self) -> Vec<Subject> {
        self.write.subjects()
    }

    fn refused(&mut self) -> u32 {
        self.refusals += 1;
        self.refusals
    }

    fn simplify(&mut self) -> bool {
        self.refusals = 0;
        self.write.simplify()
    }

    fn abandon(mut self: Box<Self>, core: &Arc<Core>) {
        self.write.abandoned(core);
    }

    fn is_ready(&mut self) -> bool {
        self.write.is_ready()
    }

    fn prepare<'a>(&'a mut self, core: &'a Core) -> WriteStep<'a> {
        Box::pin(self.write.prepare(core))
    }

    fn apply<'a>(&'a mut self, conn: &'a mut Conn, core: &'a Core) -> WriteStep<'a> {
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
        others: &'a mut [Box<dyn QueuedWrite>],
        conn: &'a mut Conn,
        core: &'a Core,
    ) -> WriteStep<'a, WriteResults> {
        Box::pin(async move {
            let others = others.iter_mut().filter_map(|other| other.as_any().downcast_mut::<Self>());
            let (writes, slots): (Vec<_>, Vec<_>) =
                iter::once(self).chain(others).map(|sent| (&mut sent.write, &mut sent.output)).unzip();
            let outputs = W::apply_all(writes, conn, core).await?;
            let done = outputs.iter().map(|output| output.as_ref().map(drop).map_err(Clone::clone)).collect();
            for (slot, output) in slots.into_iter().zip(outputs) {
                *slot = Some(output);
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
            // The caller may be gone, but the write is committed.
            let _ = reply.send(output);
        }
    }
}

//! A worker's place among others: registering, staying alive, giving leases back, and taking them from the dead.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;
use trainyard_protocol::{RequestId, RunId};

use crate::core::Core;
use crate::signals::Signal;
use crate::store::db::{Conn, Database};
use crate::store::leases::{self, Freed};
use crate::store::{requests, workers};
use crate::waiters::lock;
use crate::writer::{Urgency, Write};
use crate::{Error, Timestamp};

/// How often a process without a worker looks for dead workers.
const PERIOD: Duration = Duration::from_secs(5);
/// How often everything is read that a notification should have told of.
const REPAIR: Duration = Duration::from_secs(5);

/// The part of a process that executes requests.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Names it over restarts.
    pub id: String,
    /// Names of the base models that it serves.
    pub models: Vec<String>,
    /// Descriptions of its devices.
    pub devices: Vec<String>,
    /// Without a sign of life for so long it is taken for dead, and others get its runs.
    pub lease: Duration,
}

impl WorkerOptions {
    /// The worker of a process that serves these base models, with a lease of 15 seconds.
    pub fn new(id: impl Into<String>, models: Vec<String>) -> Self {
        Self { id: id.into(), models, devices: Vec::new(), lease: Duration::from_secs(15) }
    }
}

impl Core {
    /// Whether the worker of this process takes part.
    fn has_started(&self) -> bool {
        self.incarnation.load(Ordering::Acquire) > 0
    }

    /// Lets the worker of this process, if there is one, take part.
    pub(crate) async fn start_worker(self: &Arc<Self>) -> Result<(), Error> {
        if self.options.worker.is_none() {
            return Ok(());
        }
        self.register().await?;
        self.take_from_store().await
    }

    /// Registers the worker of this process. What a former one of its name had, or with SQLite any other, is free.
    pub(crate) async fn register(self: &Arc<Self>) -> Result<(), Error> {
        let Some(worker) = &self.options.worker else { return Ok(()) };
        let (incarnation, freed) = self.call(Register).await?;
        self.incarnation.store(incarnation, Ordering::Release);
        tracing::info!(
            worker = worker.id,
            incarnation,
            runs = freed.runs,
            samples = freed.samples,
            "the worker is registered"
        );
        Ok(())
    }

    /// One round of what has to be done now and then.
    pub(crate) async fn look_after(self: &Arc<Self>, repair: bool) -> Result<(), Error> {
        self.renew().await?;
        self.expire_workers().await?;
        if self.has_started() {
            if repair {
                self.reconcile().await?;
                self.read_all_new_requests().await?;
                self.end_ended_sessions().await?;
            }
            self.take_from_store().await?;
            let surplus = self.surplus().await?;
            let (now, idle) = (self.now(), self.options.idle_unload);
            self.with_queue(|queue| queue.let_go(now, idle, surplus));
        }
        if self.is_shared() {
            let open = requests::open_samples(&mut self.reader().await?).await?;
            *lock(&self.open_samples) = open;
        }
        if repair && self.is_shared() {
            self.waiters.wake_all();
            self.events.wake_all();
        }
        Ok(())
    }

    /// Frees what dead workers had. After the store was out of reach, all get the time of a lease to show a sign of
    /// life: they could not either.
    async fn expire_workers(self: &Arc<Self>) -> Result<(), Error> {
        let asked = Instant::now();
        let expired = self.call(ExpireWorkers { asked }).await;
        if expired.is_err() || asked.elapsed() > self.period() {
            self.reached_since.store(self.now().as_millis(), Ordering::Relaxed);
        }
        expired.map(drop)
    }

    /// Whether the store was within reach for as long as a lease.
    fn is_steady(&self) -> bool {
        let since = Timestamp(self.reached_since.load(Ordering::Relaxed));
        since.until(self.now()) >= self.period() * 3
    }

    async fn renew(self: &Arc<Self>) -> Result<(), Error> {
        let Some(worker) = self.options.worker.as_ref().filter(|_| self.has_started()) else { return Ok(()) };
        let _alone = self.renewing.lock().await;
        let (incarnation, end) = (self.incarnation.load(Ordering::Acquire), self.lease_end(self.now()));
        // Where others wait for a sign of life, it does not wait for what else there is to write.
        let known = match self.is_shared() {
            true => workers::renew_worker(&mut self.reader().await?, &worker.id, incarnation, end).await?,
            false => self.call(Renew).await?,
        };
        if known {
            return Ok(());
        }
        tracing::warn!("this worker was taken for dead: its runs have passed to others");
        self.lose_everything();
        self.register().await
    }

    /// Forgets all that this worker had.
    fn lose_everything(self: &Arc<Self>) {
        self.with_queue(|queue| queue.lose_everything());
    }

    /// Until the next round: not the same for all processes.
    fn wait(&self) -> Duration {
        self.period().mul_f64(0.75) + self.jitter(self.period() / 4)
    }

    fn period(&self) -> Duration {
        self.options.worker.as_ref().map_or(PERIOD, |worker| worker.lease / 3)
    }
}

/// Shows signs of life until the scheduler is gone, however long anything else takes.
pub(crate) async fn stay_alive(core: Weak<Core>) {
    loop {
        let Some(strong) = core.upgrade().filter(|core| !core.messages_closed()) else { return };
        if strong.options.worker.is_none() || !strong.is_shared() {
            return;
        }
        let wait = strong.wait();
        drop(strong);
        tokio::time::sleep(wait).await;
        let Some(core) = core.upgrade().filter(|core| !core.messages_closed()) else { return };
        if let Err(error) = core.renew().await {
            tracing::warn!(%error, "the leases could not be prolonged; it is tried again");
        }
    }
}

/// Looks after leases until the scheduler is gone.
pub(crate) async fn look_after(core: Weak<Core>) {
    let mut repaired = Instant::now();
    let mut next_round = None;
    loop {
        let Some(strong) = core.upgrade().filter(|core| !core.messages_closed()) else { return };
        let round = *next_round.get_or_insert_with(|| Instant::now() + strong.wait());
        let wake = Arc::clone(&strong.wake);
        drop(strong);
        // Woken by what there is to take, which may be all the time; the rounds come all the same.
        let _ = tokio::time::timeout_at(round, wake.notified()).await;
        let Some(core) = core.upgrade().filter(|core| !core.messages_closed()) else { return };
        let done = if Instant::now() < round {
            core.take_from_store().await
        } else {
            next_round = None;
            let repair = repaired.elapsed() >= REPAIR;
            if repair {
                repaired = Instant::now();
            }
            core.look_after(repair).await
        };
        if let Err(error) = done
            && !core.messages_closed()
        {
            tracing::warn!(%error, "leases could not be looked after; it is tried again");
        }
    }
}

struct Register;

impl Write for Register {
    type Output = (i64, Freed);

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Self::Output, Error> {
        let worker = core.options.worker.as_ref().ok_or(Error::Store("register a worker"))?;
        // A SQLite file has one process, so whoever had leases before is gone.
        let whose = match core.options.database {
            Database::Sqlite(_) => None,
            Database::Postgres(_) => Some(worker.id.as_str()),
        };
        let freed = leases::release_all(conn, whose, true).await?;
        let now = core.now();
        let incarnation =
            workers::register_worker(conn, &worker.id, (&worker.models, &worker.devices), now, core.lease_end(now))
                .await?;
        Ok((incarnation, freed))
    }

    fn signals(&self, (_, freed): &Self::Output, signals: &mut Vec<Signal>) {
        if *freed != Freed::default() {
            signals.push(Signal::Released);
        }
    }
}

impl Core {
    fn lease_end(&self, now: Timestamp) -> Timestamp {
        let lease = self.options.worker.as_ref().map_or(PERIOD, |worker| worker.lease);
        now.plus(lease)
    }
}

/// Prolongs the worker's leases; false when it has none any more.
struct Renew;

impl Write for Renew {
    type Output = bool;

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<bool, Error> {
        let Some(worker) = &core.options.worker else { return Ok(true) };
        let incarnation = core.incarnation.load(Ordering::Acquire);
        workers::renew_worker(conn, &worker.id, incarnation, core.lease_end(core.now())).await
    }
}

/// Gives all leases back, because the process ends.
pub(crate) struct Deregister;

impl Write for Deregister {
    type Output = Freed;

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Freed, Error> {
        let Some(worker) = core.worker_id() else { return Ok(Freed::default()) };
        // A newer process of the same name keeps what it has.
        let incarnation = core.incarnation.load(Ordering::Acquire);
        if !workers::renew_worker(conn, worker, incarnation, core.now()).await? {
            return Ok(Freed::default());
        }
        let freed = leases::release_all(conn, Some(worker), false).await?;
        workers::delete_worker(conn, worker).await?;
        Ok(freed)
    }

    fn signals(&self, freed: &Freed, signals: &mut Vec<Signal>) {
        if *freed != Freed::default() {
            signals.push(Signal::Released);
        }
    }
}

/// Frees what dead workers had, unless that took long to be written.
struct ExpireWorkers {
    asked: Instant,
}

impl Write for ExpireWorkers {
    type Output = Vec<(String, Freed)>;

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Self::Output, Error> {
        let mut all = Vec::new();
        if self.asked.elapsed() > core.period() || !core.is_steady() {
            return Ok(all);
        }
        for id in workers::expired_workers(conn, core.worker_id(), core.now()).await? {
            let freed = leases::release_all(conn, Some(&id), true).await?;
            workers::delete_worker(conn, &id).await?;
            all.push((id, freed));
        }
        for id in workers::unregistered_holders(conn, core.worker_id()).await? {
            let freed = leases::release_all(conn, Some(&id), true).await?;
            all.push((id, freed));
        }
        Ok(all)
    }

    fn signals(&self, output: &Self::Output, signals: &mut Vec<Signal>) {
        if !output.is_empty() {
            signals.push(Signal::Released);
        }
    }

    fn committed(&mut self, output: &Self::Output, core: &Arc<Core>) {
        for (worker, freed) in output {
            core.metrics.leases_lost.inc_by(freed.runs + freed.samples);
            tracing::warn!(worker, runs = freed.runs, samples = freed.samples, "a worker is gone; its leases are free");
        }
        if !output.is_empty() {
            core.wake.notify_one();
        }
    }
}

/// Gives samples back that the worker took and does not have any more.
pub(crate) struct ReleaseSamples {
    /// Each with the number of its claim.
    pub(crate) samples: Vec<(RequestId, i64)>,
    /// Nobody is told: who could take them now is this worker.
    pub(crate) quiet: bool,
}

impl Write for ReleaseSamples {
    type Output = bool;
    const URGENCY: Urgency = Urgency::Record;

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<bool, Error> {
        let Some(worker) = core.worker_id() else { return Ok(false) };
        let mut any = false;
        for (request, claim) in &self.samples {
            any |= leases::release_sample(conn, worker, request, *claim).await?;
        }
        Ok(any && !self.quiet)
    }

    fn signals(&self, released: &bool, signals: &mut Vec<Signal>) {
        if *released {
            signals.push(Signal::Samples);
        }
    }

    fn committed(&mut self, released: &bool, core: &Arc<Core>) {
        if *released {
            core.wake.notify_one();
        }
    }
}

/// Notes that a suspect is started, before it is: should the process end of it, the next one knows.
pub(crate) struct StartAlone(pub(crate) RequestId);

impl Write for StartAlone {
    type Output = ();
    const URGENCY: Urgency = Urgency::Record;

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<(), Error> {
        let Some(worker) = core.worker_id() else { return Ok(()) };
        requests::start_alone(conn, worker, &self.0).await
    }

    fn committed(&mut self, (): &(), core: &Arc<Core>) {
        tracing::warn!(request = %self.0, "a request that workers ended with is executed alone");
        core.with_queue(|queue| queue.suspect_noted(&self.0));
    }
}

/// Gives the lease of a run back of which the worker holds nothing any more.
pub(crate) struct Release {
    pub(crate) run: RunId,
    pub(crate) epoch: i64,
}

impl Write for Release {
    type Output = bool;
    const URGENCY: Urgency = Urgency::Record;

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<bool, Error> {
        match &core.options.worker {
            Some(worker) => leases::release_run(conn, &worker.id, &self.run, self.epoch).await,
            None => Ok(false),
        }
    }

    fn signals(&self, released: &bool, signals: &mut Vec<Signal>) {
        if *released {
            signals.push(Signal::Released);
        }
    }

    fn committed(&mut self, released: &bool, core: &Arc<Core>) {
        if *released {
            tracing::info!(run = %self.run, epoch = self.epoch, "a run's lease was given back");
            // Something may have arrived for it meanwhile.
            core.wake.notify_one();
        }
    }
}

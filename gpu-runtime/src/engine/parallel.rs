//! An engine of several ranks, which are threads or processes.
//!
//! Rank 0 is the engine that the caller sees. Each call that changes the engine is first sent to the other ranks, which
//! execute it on their own engines (see [`super::lockstep`]); results, counters and files are those of rank 0.

mod abandoned;
mod command;
mod copies;
mod folders;
mod idle;
mod message;
mod processes;
mod threads;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use trainyard_protocol::{
    BaseModel, Completion, EngineStats, IsAbandoned, MemoryPlan, MemoryUse, Numerics, OpError, Operation, PlanMemory,
    Prepare, RequestId, RunId, RunMemory, RunSpec, SampleProgress, TenantShare,
};

use super::memory::plan_of_all;
use super::{Engine, EngineOptions, check_layout, host_backend};
use crate::backend::{Backend, HostBackend};
use crate::collective::{CollectiveUse, Ranks, local_ranks, slice_of};
use crate::config::{LoadError, ModelSource};
use crate::parallel::Parallel;
use abandoned::Abandoned;
use command::Command;
pub use copies::{FetchDone, FetchFailure, FolderCopies};
pub use folders::RankFolders;
pub use processes::{FollowError, ProcessRank};
use threads::ThreadRank;

/// How long a rank that is a thread waits for another one in a collective. Rank 0 reads all of a model and the others their
/// part, so that they wait for it when they load; a rank that ends is noticed at once.
const LIMIT: Duration = Duration::from_secs(3600);

/// Models by the names that clients use.
type Models = Vec<(String, ModelSource)>;

/// A rank that follows rank 0.
trait Follower: Send {
    fn rank(&self) -> usize;

    /// Sends it a command, which the rank then executes.
    ///
    /// # Errors
    /// If the rank can no longer receive commands, with the reason.
    fn send(&self, command: &Command) -> Result<(), String>;

    /// The reason why the rank is lost, if that is noticed without a call.
    fn lost(&self) -> Option<String> {
        None
    }

    /// Makes a process end as after a crash, so that its supervisor starts it again.
    fn abandon(&self) {}

    #[cfg(test)]
    fn as_thread(&mut self) -> Option<&mut ThreadRank> {
        None
    }
}

/// The engine of a worker with several ranks.
pub struct ParallelEngine<B: Backend> {
    /// Dropped before the followers, whose calls then fail.
    leader: Engine<B>,
    followers: Vec<Box<dyn Follower>>,
    parallel: Parallel,
    /// The reason why a follower no longer takes commands.
    failure: Option<String>,
    /// Folders that ranks exchange, if ranks are processes.
    folders: Option<RankFolders>,
    abandoned: Abandoned,
}

impl ParallelEngine<HostBackend> {
    /// Makes an engine with the ranks of `options.parallel`, which share the threads and the memory of `options`.
    /// `models` are the models as each rank opened them.
    ///
    /// # Errors
    /// Fails if a model cannot be loaded, or cannot be shared by this number of ranks.
    pub fn new(models: Vec<Models>, options: EngineOptions) -> Result<Self, LoadError> {
        let world = options.parallel.world();
        let threads = match options.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let threads_of = |rank| slice_of(threads, world, rank).len().max(1);
        let backend = |rank| host_backend(&EngineOptions { threads: threads_of(rank), ..options.clone() });
        Self::on((0..world).map(backend).collect(), models, &options)
    }
}

impl<B: Backend> ParallelEngine<B> {
    /// Makes an engine like [`ParallelEngine::new`], with a backend for each rank.
    ///
    /// # Errors
    /// Errors of [`ParallelEngine::new`].
    pub fn on(backends: Vec<B>, models: Vec<Models>, options: &EngineOptions) -> Result<Self, LoadError> {
        let parallel = options.parallel;
        models.iter().try_for_each(|models| check_models(models, parallel))?;
        let options = options.of_rank();
        let mut starts = local_ranks(parallel.world(), LIMIT).into_iter().zip(backends.into_iter().zip(models));
        let (rank, (backend, own)) = starts.next().ok_or_else(|| rank_error(0, "expected at least one rank"))?;
        let abandoned = Abandoned::default();
        let mut followers: Vec<Box<dyn Follower>> = Vec::new();
        let mut loading = Vec::new();
        for (rank, (backend, models)) in starts {
            let (follower, loaded) = ThreadRank::spawn(rank, backend, models, options.clone(), abandoned.of_thread())?;
            followers.push(Box::new(follower));
            loading.push(loaded);
        }
        let leader = Engine::on_ranks(backend, own, options, Ranks::new(Arc::new(rank)))?;
        for (at, loaded) in loading.into_iter().enumerate() {
            loaded.recv().unwrap_or_else(|_| Err(rank_error(at + 1, "its thread ended while it loaded the models")))?;
        }
        Ok(Self { leader, followers, parallel, failure: None, folders: None, abandoned })
    }

    /// Returns the backend of rank 0, which describes its device.
    pub fn backend(&self) -> &B {
        self.leader.backend()
    }

    /// Returns the folders that other ranks fetch; `None` unless ranks are processes.
    pub fn folders(&self) -> Option<&RankFolders> {
        self.folders.as_ref()
    }

    /// Returns the cost of collectives on rank 0.
    pub fn collectives(&self) -> CollectiveUse {
        self.leader.ranks.used()
    }

    /// Sends a call to all followers.
    fn send(&mut self, command: &Command) {
        for follower in &self.followers {
            let Err(reason) = follower.send(command) else { continue };
            tracing::error!(rank = follower.rank(), reason, "the rank was lost");
            self.failure.get_or_insert_with(|| lost(&**follower, &reason));
        }
    }

    fn ranks(&self) -> u64 {
        self.parallel.world() as u64
    }
}

impl<B: Backend> Drop for ParallelEngine<B> {
    fn drop(&mut self) {
        use trainyard_protocol::Engine as _;

        if self.failure().is_some() {
            self.followers.iter().for_each(|follower| follower.abandon());
        }
    }
}

/// Whether the ranks of a layout can share the models.
fn check_models(models: &Models, parallel: Parallel) -> Result<(), LoadError> {
    models.iter().try_for_each(|(_, model)| Ok(check_layout(&model.config, parallel)?))
}

/// Why the engine cannot go on without a rank.
fn lost(follower: &dyn Follower, reason: &str) -> String {
    format!("rank {} was lost: {reason}", follower.rank())
}

fn rank_error(rank: usize, reason: &str) -> LoadError {
    LoadError::Rank { rank, reason: reason.to_owned() }
}

impl<B: Backend> trainyard_protocol::Engine for ParallelEngine<B> {
    fn models(&self) -> Vec<BaseModel> {
        self.leader.models()
    }

    fn numerics(&self) -> BTreeMap<String, Numerics> {
        self.leader.numerics()
    }

    fn preparer(&self) -> Arc<dyn Prepare> {
        self.leader.preparer()
    }

    fn memory(&self) -> Arc<dyn PlanMemory> {
        Arc::new(AllRanks { one: self.leader.memory(), ranks: self.ranks() })
    }

    fn start(&mut self, id: RequestId, share: TenantShare, operation: Operation) {
        self.send(&Command::Start(id.clone(), share.clone(), Box::new(operation.clone())));
        self.leader.start(id, share, operation);
    }

    fn step(&mut self) -> Vec<Completion> {
        self.send(&Command::Step);
        let done = self.leader.step();
        if self.failure().is_some() { Vec::new() } else { done }
    }

    fn is_idle(&self) -> bool {
        self.leader.is_idle()
    }

    fn take_admitted(&mut self) -> Vec<RequestId> {
        self.leader.take_admitted()
    }

    fn sampled_since(&self, id: &RequestId, known: &[usize]) -> Vec<SampleProgress> {
        self.leader.sampled_since(id, known)
    }

    fn cancel(&mut self, ids: &BTreeSet<RequestId>) {
        self.send(&Command::Cancel(ids.clone()));
        self.leader.cancel(ids);
    }

    fn ask_when_abandoned(&mut self, is_abandoned: IsAbandoned) {
        self.leader.ask_when_abandoned(self.abandoned.install(is_abandoned));
    }

    fn unload_run(&mut self, run: &RunId) {
        self.send(&Command::UnloadRun(run.clone()));
        self.leader.unload_run(run);
    }

    fn drop_snapshot(&mut self, key: &str) {
        self.send(&Command::DropSnapshot(key.to_owned()));
        self.leader.drop_snapshot(key);
    }

    fn stats(&self) -> EngineStats {
        let (stats, ranks) = (self.leader.stats(), self.ranks());
        // Rank 0 knows what each replica has of keys and values, which its ranks have equal parts of.
        let kv = stats.kv_bytes * self.parallel.replica() as u64;
        EngineStats {
            kv_bytes: kv,
            kv_limit: stats.kv_limit.saturating_mul(ranks),
            memory: MemoryUse { kv, ..use_of_all(stats.memory, ranks) },
            memory_budget: stats.memory_budget * ranks,
            ..stats
        }
    }

    fn failure(&self) -> Option<OpError> {
        let noticed = || self.followers.iter().find_map(|follower| Some(lost(&**follower, &follower.lost()?)));
        self.leader.failure().or_else(|| self.failure.clone().or_else(noticed).map(OpError::server))
    }
}

/// Predicts what all ranks take together; their parts have the same size.
struct AllRanks {
    one: Arc<dyn PlanMemory>,
    ranks: u64,
}

impl PlanMemory for AllRanks {
    fn plan(&self) -> MemoryPlan {
        plan_of_all(self.one.plan(), self.ranks)
    }

    fn run(&self, spec: &RunSpec) -> Option<RunMemory> {
        let RunMemory { bytes, snapshot_bytes } = self.one.run(spec)?;
        Some(RunMemory { bytes: bytes * self.ranks, snapshot_bytes: snapshot_bytes * self.ranks })
    }
}

fn use_of_all(one: MemoryUse, ranks: u64) -> MemoryUse {
    MemoryUse {
        weights: one.weights * ranks,
        runs: one.runs * ranks,
        snapshots: one.snapshots * ranks,
        checkpoints: one.checkpoints * ranks,
        kv: one.kv * ranks,
        activations: one.activations * ranks,
    }
}

#[cfg(test)]
#[path = "parallel_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "interrupt_tests.rs"]
mod interrupt_tests;

#[cfg(test)]
#[path = "loading_tests.rs"]
mod loading_tests;

#[cfg(test)]
#[path = "vocabulary_tests.rs"]
mod vocabulary_tests;

#[cfg(test)]
#[path = "divided_memory_tests.rs"]
mod divided_memory_tests;

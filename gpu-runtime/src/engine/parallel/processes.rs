//! Ranks that are processes, on one machine or several.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trainyard_protocol::Engine as _;

use super::abandoned::{Abandoned, Told, messages};
use super::command::Command;
use super::copies::FolderCopies;
use super::folders::RankFolders;
use super::idle::IdleMemory;
use super::message::{Message, Reply};
use super::{Follower, Models, ParallelEngine, check_models, rank_error};
use crate::backend::{Backend, HostBackend, MicrobatchRows};
use crate::collective::{CollectiveError, Heartbeat, MessageLink, Ranks, Rendezvous};
use crate::config::{LoadError, ModelSource};
use crate::engine::{Engine, EngineOptions, host_backend};

/// One process of a worker whose ranks are processes.
pub struct ProcessRank {
    ranks: Ranks,
    /// Connections of rank 0 to each other rank; on the others only the one to rank 0.
    links: Vec<MessageLink>,
}

/// Reasons why a rank stopped following rank 0.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The rank cannot load the models.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Rank 0 is lost, and with it this rank's results.
    #[error("rank 0 was lost: {0}")]
    Lost(String),
    /// Rank 0 sent something that this version cannot read.
    #[error("rank 0 sent a call that cannot be read: {0}")]
    Malformed(String),
    /// A collective with other ranks failed.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
}

impl ProcessRank {
    /// Waits for the other ranks.
    ///
    /// # Errors
    /// [`CollectiveError::Rendezvous`] if a rank does not join.
    pub fn join(rendezvous: &Rendezvous) -> Result<Self, CollectiveError> {
        let (rank, links) = rendezvous.join_with_messages(Heartbeat::default())?;
        Ok(Self { ranks: Ranks::new(Arc::new(rank)), links })
    }

    /// Makes the engine of rank 0 on the host backend, like [`ParallelEngine::over`].
    ///
    /// # Errors
    /// Errors of [`ParallelEngine::over`].
    pub fn lead(
        self,
        models: Vec<(String, ModelSource)>,
        options: &EngineOptions,
    ) -> Result<ParallelEngine<HostBackend>, LoadError> {
        ParallelEngine::over(self, host_backend(options), models, options)
    }

    /// Follows rank 0 on the host backend until it ends: executes the calls that rank 0 executes. Budgets in `options`
    /// are this process's. Folders that rank 0 has fetched are read from `copies`. Calls `ready` once the models are
    /// loaded.
    ///
    /// # Errors
    /// Fails if the models cannot be loaded, or a rank is lost.
    pub fn follow(
        self,
        models: Vec<(String, ModelSource)>,
        options: &EngineOptions,
        copies: &dyn FolderCopies,
        ready: impl FnOnce(),
    ) -> Result<(), FollowError> {
        self.follow_on(host_backend(options), models, options, copies, ready)
    }

    /// [`ProcessRank::follow`] on a given backend.
    pub(crate) fn follow_on<B: Backend>(
        self,
        backend: B,
        models: Models,
        options: &EngineOptions,
        copies: &dyn FolderCopies,
        ready: impl FnOnce(),
    ) -> Result<(), FollowError> {
        check_models(&models, options.parallel)?;
        let options = agreed(&self.ranks, &backend, &models, options)?;
        let mut engine = Engine::on_ranks(backend, models, options, self.ranks.clone())?;
        ready();
        let Self { ranks, mut links } = self;
        let Some(link) = links.first_mut() else { return Ok(()) };
        let Some(incoming) = link.take_incoming() else { return Ok(()) };
        let told = Told::default();
        engine.ask_when_abandoned(told.asked());
        let messages = messages(incoming, told).map_err(|error| rank_error(ranks.rank(), &error.to_string()))?;
        let idle = IdleMemory::watch();
        for message in messages {
            match message.map_err(FollowError::Malformed)? {
                Message::Call(command) => command.into_owned().with_copies(copies).call(&mut engine),
                Message::Fetch { dir, location } => {
                    let (rank_0, folder) = (link.sender(), dir.clone());
                    let reply = move |result| match (Reply { dir: folder, result }).to_bytes() {
                        // Rank 0 may have ended.
                        Ok(reply) => drop(rank_0.send(reply)),
                        Err(error) => tracing::error!(%error, "failed to notify rank 0 of a folder"),
                    };
                    copies.fetch(&dir, &location, Box::new(reply));
                }
                Message::Remove { dir } => copies.remove(&dir),
                // It was heard already.
                Message::Abandoned(_) => {}
            }
            idle.called();
            if let Err(failure) = ranks.check() {
                // The cause is known better where the connection was watched.
                return Err(link.lost().map_or(failure.into(), |reason| FollowError::Lost(reason.to_owned())));
            }
        }
        link.lost().map_or(Ok(()), |reason| Err(FollowError::Lost(reason.to_owned())))
    }
}

impl<B: Backend> ParallelEngine<B> {
    /// Makes the engine of rank 0 for ranks that are processes. Budgets in `options` are this process's, and those of
    /// each rank.
    ///
    /// # Errors
    /// Fails if a model cannot be loaded or cannot be shared by this number of ranks, or if ranks do not serve the same
    /// models.
    pub fn over(
        processes: ProcessRank,
        backend: B,
        models: Vec<(String, ModelSource)>,
        options: &EngineOptions,
    ) -> Result<Self, LoadError> {
        let ProcessRank { ranks, mut links } = processes;
        let folders = RankFolders::over(&mut links).map_err(|error| rank_error(0, &error.to_string()))?;
        check_models(&models, options.parallel)?;
        let options = agreed(&ranks, &backend, &models, options)?;
        let parallel = options.parallel;
        let leader = Engine::on_ranks(backend, models, options, ranks)?;
        let abandoned = Abandoned::of_processes(links.iter().map(MessageLink::sender).collect());
        let followers = links.into_iter().map(|link| Box::new(Process { link }) as Box<dyn Follower>).collect();
        Ok(Self { leader, followers, parallel, failure: None, folders: Some(folders), abandoned })
    }
}

/// Connection of rank 0 to another process. Dropping it ends that process in good order.
struct Process {
    link: MessageLink,
}

impl Follower for Process {
    fn rank(&self) -> usize {
        self.link.rank()
    }

    fn send(&self, command: &Command) -> Result<(), String> {
        let message = Message::Call(Cow::Borrowed(command)).to_bytes().map_err(|error| error.to_string())?;
        if self.link.send(message) { Ok(()) } else { Err(self.link.lost().unwrap_or("it ended").to_owned()) }
    }

    fn lost(&self) -> Option<String> {
        self.link.lost().map(str::to_owned)
    }

    fn abandon(&self) {
        self.link.abandon();
    }
}

/// Settings that decide which passes an engine plans, and so must be the same on all ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Terms {
    /// Names and configurations of the served models.
    models: Vec<(String, String)>,
    kernels: String,
    dtype: String,
    memory_bytes: Option<usize>,
    kv_bytes: usize,
    activation_bytes: usize,
    checkpoint_bytes: usize,
    /// Rows, with and without a gradient.
    microbatch: [usize; 2],
}

/// The options with which all ranks compute: with the smallest budgets of any.
fn agreed<B: Backend>(
    ranks: &Ranks,
    backend: &B,
    models: &Models,
    options: &EngineOptions,
) -> Result<EngineOptions, LoadError> {
    let failed = |reason: String| rank_error(ranks.rank(), &reason);
    let rows = options.microbatch_tokens.map_or_else(|| backend.microbatch_rows(), MicrobatchRows::of_all);
    let own = Terms {
        models: models.iter().map(|(name, model)| (name.clone(), format!("{:?}", model.config))).collect(),
        kernels: backend.device().kernels.to_owned(),
        dtype: backend.dtype().name().to_owned(),
        memory_bytes: options.memory_bytes,
        kv_bytes: options.kv_bytes,
        activation_bytes: options.activation_bytes,
        checkpoint_bytes: options.checkpoint_bytes,
        microbatch: [rows.training, rows.forward],
    };
    let mine = serde_json::to_vec(&own).map_err(|error| failed(error.to_string()))?;
    let all = ranks.all_bytes(mine);
    ranks.check().map_err(|error| failed(error.to_string()))?;
    let read = |bytes: &Arc<Vec<u8>>| serde_json::from_slice::<Terms>(bytes);
    let all = all.iter().map(read).collect::<Result<Vec<_>, _>>().map_err(|error| failed(error.to_string()))?;
    for (rank, other) in all.iter().enumerate() {
        let first = &all[0];
        let differs = |what: &str, of: fn(&Terms) -> String| {
            (of(other) != of(first))
                .then(|| rank_error(rank, &format!("its {what} are {}, those of rank 0 {}", of(other), of(first))))
        };
        let names = |terms: &Terms| terms.models.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        let found = differs("models", names)
            .or_else(|| differs("kernels", |terms| terms.kernels.clone()))
            .or_else(|| differs("weights", |terms| terms.dtype.clone()))
            .or_else(|| differs("rows of microbatches", |terms| format!("{:?}", terms.microbatch)))
            .or_else(|| {
                (other.models != first.models).then(|| rank_error(rank, "a model's config.json differs from rank 0's"))
            });
        if let Some(error) = found {
            // A rank that ended at once would not be heard: all have to have read what differs.
            ranks.meet(&[]);
            return Err(error);
        }
    }
    let least = |of: fn(&Terms) -> usize| all.iter().map(of).min().unwrap_or_default();
    Ok(EngineOptions {
        memory_bytes: all.iter().filter_map(|terms| terms.memory_bytes).min(),
        kv_bytes: least(|terms| terms.kv_bytes),
        activation_bytes: least(|terms| terms.activation_bytes),
        checkpoint_bytes: least(|terms| terms.checkpoint_bytes),
        ..options.clone()
    })
}

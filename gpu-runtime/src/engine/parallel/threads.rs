//! Ranks that are threads of this process.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use trainyard_protocol::{Engine as _, IsAbandoned};

use super::command::Command;
use super::{Follower, Models, rank_error};
use crate::backend::Backend;
use crate::collective::{Collective as _, LocalRank, Ranks};
use crate::config::LoadError;
use crate::engine::{Engine, EngineOptions};

/// A rank on a thread of its own. Dropping it waits for the thread.
pub(super) struct ThreadRank {
    rank: usize,
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<()>>,
}

impl ThreadRank {
    /// Starts a rank, which loads its parts of the models and reports when it is done.
    pub(super) fn spawn<B: Backend>(
        rank: LocalRank,
        backend: B,
        models: Models,
        options: EngineOptions,
        is_abandoned: IsAbandoned,
    ) -> Result<(Self, Receiver<Result<(), LoadError>>), LoadError> {
        let (number, (commands, received)) = (rank.rank(), channel());
        let (report, loaded) = channel();
        let work = move || match Engine::on_ranks(backend, models, options, Ranks::new(Arc::new(rank))) {
            Ok(mut engine) => {
                engine.ask_when_abandoned(is_abandoned);
                // Rank 0 has ended if it does not receive this; then it sends no commands either.
                drop(report.send(Ok(())));
                received.into_iter().for_each(|command: Command| command.call(&mut engine));
            }
            Err(error) => drop(report.send(Err(error))),
        };
        let thread = std::thread::Builder::new().name(format!("rank {number}")).spawn(work);
        let thread = thread.map_err(|error| rank_error(number, &error.to_string()))?;
        Ok((Self { rank: number, commands: Some(commands), thread: Some(thread) }, loaded))
    }

    /// Ends the rank's thread.
    #[cfg(test)]
    pub(super) fn end(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            assert!(thread.join().is_ok());
        }
    }
}

impl Follower for ThreadRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn send(&self, command: &Command) -> Result<(), String> {
        let sent = self.commands.as_ref().is_some_and(|commands| commands.send(command.clone()).is_ok());
        if sent { Ok(()) } else { Err("its thread ended".to_owned()) }
    }

    #[cfg(test)]
    fn as_thread(&mut self) -> Option<&mut ThreadRank> {
        Some(self)
    }
}

impl Drop for ThreadRank {
    fn drop(&mut self) {
        self.commands = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!(rank = self.rank, "the rank's thread panicked");
        }
    }
}

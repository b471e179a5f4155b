//! Folders that every rank copies, if ranks are processes without a common file system.
//!
//! Rank 0 makes the others fetch the folders that it fetches itself, and starts an operation that reads one once all
//! have it. So no rank waits for a transfer within a step, and a transfer fails before ranks could disagree. Copies
//! live as long as those of rank 0, which asks the others to remove them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

use super::copies::{FetchDone, FetchFailure};
use super::message::{Message, Reply};
use crate::collective::{MessageLink, MessageSender};

/// Requests to all other ranks to fetch folders.
#[derive(Clone)]
pub struct RankFolders {
    others: Arc<[(usize, MessageSender)]>,
    waiting: Arc<Mutex<Waiting>>,
}

/// Fetches in progress, by the folder of rank 0.
#[derive(Default)]
struct Waiting {
    fetches: BTreeMap<PathBuf, Fetch>,
    /// Ranks that will no longer answer.
    gone: BTreeSet<usize>,
}

struct Fetch {
    missing: BTreeSet<usize>,
    /// Failure of the lowest rank that has one.
    failure: Option<(usize, FetchFailure)>,
    done: FetchDone,
}

impl RankFolders {
    /// Makes folders over the connections of rank 0.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(super) fn over(links: &mut [MessageLink]) -> io::Result<Self> {
        let waiting = Arc::<Mutex<Waiting>>::default();
        for link in &mut *links {
            let Some(incoming) = link.take_incoming() else { continue };
            let (rank, waiting) = (link.rank(), Arc::clone(&waiting));
            thread::Builder::new()
                .name(format!("replies-of-rank-{rank}"))
                .spawn(move || hear(rank, &incoming, &waiting))?;
        }
        let others = links.iter().map(|link| (link.rank(), link.sender())).collect();
        Ok(Self { others, waiting })
    }

    /// Asks the other ranks to fetch the folder at `location` in the storage, which this rank has at `dir`, a path
    /// never used for anything else. Calls `done` when all ranks have it, or when all have answered and one has failed.
    pub fn fetch(&self, dir: &Path, location: &Path, done: FetchDone) {
        let mut missing: BTreeSet<usize> = self.others.iter().map(|(rank, _)| *rank).collect();
        let message = Message::Fetch { dir: dir.to_owned(), location: location.to_owned() }.to_bytes();
        let Ok(message) = message else {
            return done(Err(FetchFailure::Failed("its path is not UTF-8".to_owned())));
        };
        {
            let mut waiting = lock(&self.waiting);
            missing.retain(|rank| !waiting.gone.contains(rank));
            let gone = waiting.gone.first().map(|&rank| (rank, lost()));
            waiting.fetches.insert(dir.to_owned(), Fetch { missing, failure: gone, done });
        }
        for (rank, sender) in &*self.others {
            if !sender.send(message.clone()) {
                answered(&self.waiting, *rank, dir, Err(lost()));
            }
        }
        complete(&self.waiting, dir);
    }

    /// Asks the other ranks to remove their copies.
    pub fn remove(&self, dir: &Path) {
        // What was fetched has a path that can be sent.
        let Ok(message) = (Message::Remove { dir: dir.to_owned() }).to_bytes() else { return };
        for (_, sender) in &*self.others {
            // A rank that is lost needs no room.
            sender.send(message.clone());
        }
    }
}

fn lost() -> FetchFailure {
    FetchFailure::Failed("it was lost".to_owned())
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Receives a rank's answers until it ends.
fn hear(rank: usize, incoming: &Receiver<Vec<u8>>, waiting: &Mutex<Waiting>) {
    for message in incoming {
        match Reply::from_bytes(&message) {
            Ok(Reply { dir, result }) => answered(waiting, rank, &dir, result),
            Err(error) => tracing::error!(rank, %error, "an answer of a rank cannot be read"),
        }
    }
    let open: Vec<PathBuf> = {
        let mut waiting = lock(waiting);
        waiting.gone.insert(rank);
        waiting.fetches.keys().cloned().collect()
    };
    open.iter().for_each(|dir| answered(waiting, rank, dir, Err(lost())));
}

/// Notes a rank's answer, unless it has one already.
fn answered(waiting: &Mutex<Waiting>, rank: usize, dir: &Path, result: Result<(), FetchFailure>) {
    if let Some(fetch) = lock(waiting).fetches.get_mut(dir)
        && fetch.missing.remove(&rank)
        && let Err(failure) = result
        && fetch.failure.as_ref().is_none_or(|(other, _)| rank < *other)
    {
        fetch.failure = Some((rank, failure));
    }
    complete(waiting, dir);
}

/// Reports a fetch that all ranks have answered.
fn complete(waiting: &Mutex<Waiting>, dir: &Path) {
    let fetch = {
        let mut waiting = lock(waiting);
        if !waiting.fetches.get(dir).is_some_and(|fetch| fetch.missing.is_empty()) {
            return;
        }
        waiting.fetches.remove(dir)
    };
    let Some(Fetch { failure, done, .. }) = fetch else { return };
    done(match failure {
        None => Ok(()),
        Some((_, FetchFailure::Missing)) => Err(FetchFailure::Missing),
        Some((rank, FetchFailure::Failed(reason))) => Err(FetchFailure::Failed(format!("rank {rank}: {reason}"))),
    });
}

#[cfg(test)]
#[path = "folders_tests.rs"]
mod tests;

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use super::*;
use crate::collective::{Heartbeat, Rendezvous};

const LIMIT: Duration = Duration::from_secs(60);

/// Calls `lead` with the folders of rank 0, and `follow` with the connection of each other rank.
fn with_ranks(world: usize, follow: impl Fn(usize, MessageLink) + Sync, lead: impl FnOnce(RankFolders)) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let join = |rank| {
        let (address, job) = (address.clone(), "tests".to_owned());
        let meeting = Rendezvous { address, rank, world, job, patience: LIMIT, limit: LIMIT };
        meeting.join_with_messages(Heartbeat::default()).unwrap()
    };
    thread::scope(|scope| {
        for rank in 1..world {
            let (join, follow) = (&join, &follow);
            scope.spawn(move || {
                let (_collectives, mut links) = join(rank);
                follow(rank, links.remove(0));
            });
        }
        let (_collectives, mut links) = join(0);
        lead(RankFolders::over(&mut links).unwrap());
    });
}

/// The result of fetching a folder.
fn fetched(folders: &RankFolders, dir: &str) -> Result<(), FetchFailure> {
    let (done, result) = channel();
    folders.fetch(Path::new(dir), Path::new("checkpoints/a"), reporting(done));
    result.recv_timeout(LIMIT).unwrap()
}

fn reporting(done: Sender<Result<(), FetchFailure>>) -> FetchDone {
    Box::new(move |result| done.send(result).unwrap())
}

fn reply(link: &MessageLink, dir: &Path, result: Result<(), FetchFailure>) {
    assert!(link.send(Reply { dir: dir.to_owned(), result }.to_bytes().unwrap()));
}

/// Answers fetches with the result of `answer` for a rank and a folder, until rank 0 ends. Returns the folders that
/// were to be removed.
fn serve(
    rank: usize,
    link: &MessageLink,
    answer: impl Fn(usize, &str) -> Option<Result<(), FetchFailure>>,
) -> Vec<PathBuf> {
    let mut removed = Vec::new();
    while let Some(message) = link.receive() {
        match Message::from_bytes(&message).unwrap() {
            Message::Fetch { dir, location } => {
                assert_eq!(location, Path::new("checkpoints/a"));
                match answer(rank, dir.to_str().unwrap()) {
                    Some(result) => reply(link, &dir, result),
                    None => return removed,
                }
            }
            Message::Remove { dir } => removed.push(dir),
            other => panic!("{other:?}"),
        }
    }
    removed
}

fn failed(reason: &str) -> FetchFailure {
    FetchFailure::Failed(reason.to_owned())
}

#[test]
fn a_folder_is_fetched_when_all_ranks_have_it() {
    let answer = |rank, dir: &str| {
        Some(match (rank, dir) {
            (2, "missing") => Err(FetchFailure::Missing),
            (_, "full") => Err(failed(&format!("no space on {rank}"))),
            _ => Ok(()),
        })
    };
    let serve = |rank, link| assert_eq!(serve(rank, &link, answer), [Path::new("one")]);
    with_ranks(3, serve, |folders| {
        assert_eq!(fetched(&folders, "one"), Ok(()));
        assert_eq!(fetched(&folders, "missing"), Err(FetchFailure::Missing));
        // Of the first rank that has a failure.
        assert_eq!(fetched(&folders, "full"), Err(failed("rank 1: no space on 1")));
        folders.remove(Path::new("one"));
    });
}

#[test]
fn fetches_overlap_and_are_answered_in_any_order() {
    let serve = |_, link: MessageLink| {
        let dirs: Vec<PathBuf> = (0..3)
            .map(|_| match Message::from_bytes(&link.receive().unwrap()).unwrap() {
                Message::Fetch { dir, .. } => dir,
                other => panic!("{other:?}"),
            })
            .collect();
        dirs.iter().rev().for_each(|dir| reply(&link, dir, Ok(())));
        assert!(link.receive().is_none());
    };
    with_ranks(3, serve, |folders| {
        let (done, results) = channel();
        for dir in ["one", "two", "three"] {
            folders.fetch(Path::new(dir), Path::new("checkpoints/a"), reporting(done.clone()));
        }
        for _ in 0..3 {
            assert_eq!(results.recv_timeout(LIMIT).unwrap(), Ok(()));
        }
    });
}

/// Nobody waits for a rank that ended, whether it had the order or not.
#[test]
fn a_rank_that_ends_fails_the_fetches() {
    let answer = |rank, dir: &str| (rank == 1 || dir != "last").then_some(Ok(()));
    with_ranks(
        3,
        |rank, link| drop(serve(rank, &link, answer)),
        |folders| {
            assert_eq!(fetched(&folders, "one"), Ok(()));
            for dir in ["last", "later", "latest"] {
                assert_eq!(fetched(&folders, dir), Err(failed("rank 2: it was lost")), "{dir}");
            }
        },
    );
}

//! The thread where ranks meet.

use std::io::{Read, Result};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::exchange::route;
use crate::message::{Call, Kind, send_answer};
use crate::reduce::{reduce, size};

/// Held for reading by a hub that sends the answers of a collective.
static ANSWERING: RwLock<()> = RwLock::new(());

/// Waits until this process' hubs have sent the answers they are sending. The hub is a thread of one rank's process: a
/// rank that has its own answer and ends must not take along the answers that the other ranks still wait for.
pub(crate) fn wait_for_answers() {
    drop(ANSWERING.write().unwrap_or_else(PoisonError::into_inner));
}

/// Reads `CUDASIM_NCCL_TIMEOUT_MS`: how long the ranks in a collective wait for the last one, and how long joining,
/// sending and receiving may take. The wait for the first rank in a collective is unlimited.
pub(crate) fn patience() -> Duration {
    let set = std::env::var("CUDASIM_NCCL_TIMEOUT_MS").ok().and_then(|value| value.parse().ok());
    Duration::from_millis(set.unwrap_or(20_000))
}

/// Listens at a path until all ranks have come and gone. The first rank to connect sends the number of ranks.
pub(crate) fn start(path: &Path) -> Result<()> {
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    let path = path.to_path_buf();
    std::thread::spawn(move || {
        let ranks = gather(&listener);
        // Nobody else comes; the process may end before its ranks have gone.
        let _ = std::fs::remove_file(path);
        if let Ok(hub) = ranks.and_then(Hub::new) {
            while hub.round() {}
            hub.end();
        }
    });
    Ok(())
}

/// The ranks' connections, in the order of ranks.
fn gather(listener: &UnixListener) -> Result<Vec<UnixStream>> {
    let deadline = Instant::now() + patience();
    let mut ranks: Vec<Option<UnixStream>> = Vec::new();
    while ranks.is_empty() || ranks.iter().any(Option::is_none) {
        let mut stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(2));
                continue;
            }
            Err(error) => return Err(error),
        };
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(patience()))?;
        stream.set_write_timeout(Some(patience()))?;
        let mut greeting = [0; 8];
        stream.read_exact(&mut greeting)?;
        stream.set_read_timeout(None)?;
        let number =
            |at: usize| u32::from_le_bytes([greeting[at], greeting[at + 1], greeting[at + 2], greeting[at + 3]]);
        let (rank, world) = (number(0) as usize, number(4) as usize);
        if ranks.is_empty() {
            ranks.resize_with(world, || None);
        }
        match ranks.get_mut(rank) {
            Some(place @ None) => *place = Some(stream),
            // A rank that is there already, or beyond the number of ranks: it is sent away.
            _ => drop(stream),
        }
    }
    Ok(ranks.into_iter().flatten().collect())
}

/// A call of a rank, or the reason why it will never call.
type Arrival = (usize, Result<(Call, Vec<u8>)>);

/// Connections to all ranks.
struct Hub {
    ranks: Vec<UnixStream>,
    arrivals: Receiver<Arrival>,
}

impl Hub {
    /// Starts a thread per rank that reads the rank's calls, so that the end of any rank is noticed.
    fn new(ranks: Vec<UnixStream>) -> Result<Self> {
        let (arrived, arrivals) = channel();
        for (rank, stream) in ranks.iter().enumerate() {
            let (mut stream, arrived) = (stream.try_clone()?, arrived.clone());
            std::thread::spawn(move || {
                loop {
                    let call = Call::receive(&mut stream);
                    let is_last = call.is_err();
                    if arrived.send((rank, call)).is_err() || is_last {
                        return;
                    }
                }
            });
        }
        Ok(Self { ranks, arrivals })
    }

    /// Waits for the calls of all ranks. The wait for the first of them is unlimited: ranks may have nothing to do.
    fn calls(&self) -> std::result::Result<Vec<(Call, Vec<u8>)>, String> {
        let mut calls: Vec<Option<(Call, Vec<u8>)>> = self.ranks.iter().map(|_| None).collect();
        let mut deadline = None;
        while let Some(absent) = calls.iter().position(Option::is_none) {
            let arrival = match deadline {
                None => self.arrivals.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(deadline) => self.arrivals.recv_timeout(remaining(deadline)),
            };
            match arrival {
                Ok((rank, Ok(call))) => calls[rank] = Some(call),
                Ok((rank, Err(error))) => return Err(format!("rank {rank} left the communicator: {error}")),
                Err(_) => return Err(format!("rank {absent} never called")),
            }
            deadline.get_or_insert_with(|| Instant::now() + patience());
        }
        Ok(calls.into_iter().flatten().collect())
    }

    /// One collective; false once no further one is possible.
    fn round(&self) -> bool {
        let answers = self.calls().and_then(|calls| compute(&calls));
        let _answering = ANSWERING.read().unwrap_or_else(PoisonError::into_inner);
        for (rank, mut stream) in self.ranks.iter().enumerate() {
            let answer = match &answers {
                Ok(answers) => Ok(answers[rank].clone()),
                Err(message) => Err(message.clone()),
            };
            // A rank that is gone needs no answer; the next round notices.
            let _ = send_answer(&mut stream, &answer);
        }
        answers.is_ok()
    }

    /// Closes the connections: what was sent can still be read.
    fn end(self) {
        for stream in self.ranks {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

fn remaining(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// Computes each rank's result.
fn compute(calls: &[(Call, Vec<u8>)]) -> std::result::Result<Vec<Vec<u8>>, String> {
    let Some((first, _)) = calls.first() else { return Err("no ranks".to_owned()) };
    if let Some(other) = calls.iter().position(|(call, _)| call != first) {
        return Err(format!("ranks 0 and {other} call different collectives: {first:?} and {:?}", calls[other].0));
    }
    let data: Vec<Vec<u8>> = calls.iter().map(|(_, data)| data.clone()).collect();
    let reduced = || {
        reduce(first.element, first.operation, &data)
            .ok_or_else(|| format!("type {} or operation {} is not simulated", first.element, first.operation))
    };
    let all = |bytes: Vec<u8>| vec![bytes; calls.len()];
    Ok(match first.kind {
        Kind::Join => all(data.concat()),
        Kind::AllReduce | Kind::Reduce => all(reduced()?),
        Kind::Broadcast => all(data.get(first.root as usize).cloned().unwrap_or_default()),
        Kind::AllGather => all(data.concat()),
        Kind::Exchange => route(&data)?,
        Kind::ReduceScatter => {
            let part = first.count as usize * size(first.element).unwrap_or(1);
            reduced()?.chunks(part.max(1)).map(<[u8]>::to_vec).collect()
        }
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::message::receive_answer;

    fn answer(stream: &mut UnixStream) -> Vec<u8> {
        let mut first = [0];
        stream.read_exact(&mut first).unwrap();
        receive_answer(first[0], stream).unwrap().unwrap()
    }

    /// The answer is larger than a socket's buffer, so that the hub sends it for as long as nobody reads it.
    #[test]
    fn a_rank_that_ends_waits_for_the_others_answers() {
        let (mut first, hub_of_first) = UnixStream::pair().unwrap();
        let (mut second, hub_of_second) = UnixStream::pair().unwrap();
        let data = vec![7; 4 << 20];
        std::thread::scope(|scope| {
            let hub = Hub::new(vec![hub_of_first, hub_of_second]).unwrap();
            let hub = scope.spawn(move || hub.round());
            let call = Call { kind: Kind::Broadcast, element: 0, operation: 0, root: 0, count: data.len() as u64 };
            call.send(&mut first, &data).unwrap();
            call.send(&mut second, &[]).unwrap();
            assert_eq!(answer(&mut first), data);
            let ends = scope.spawn(wait_for_answers);
            std::thread::sleep(Duration::from_millis(50));
            assert!(!ends.is_finished());
            assert_eq!(answer(&mut second), data);
            ends.join().unwrap();
            assert!(hub.join().unwrap());
        });
    }
}

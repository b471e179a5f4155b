//! A rank and its connections.

use std::io::ErrorKind;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use super::frame::Frame;
use crate::collective::call::{Call, CollectiveError};
use crate::collective::payload::Payload;
use crate::collective::rank::Collective;

/// How long a look at a connection waits.
const MOMENT: Duration = Duration::from_millis(1);

/// A rank that is a process of its own.
#[derive(Debug)]
pub struct TcpRank {
    rank: usize,
    limit: Duration,
    /// Locked for a whole exchange: collectives of a rank are in order.
    links: Mutex<Links>,
    /// Why a [`Breaker`] has ended the connections.
    broken: Arc<OnceLock<LostRank>>,
}

/// A rank that is lost, and what is known of the cause.
#[derive(Clone, Debug)]
struct LostRank {
    rank: usize,
    reason: String,
}

#[derive(Debug)]
struct Links {
    /// Links by rank; `None` for this one.
    peers: Vec<Option<Link>>,
    failure: Option<CollectiveError>,
}

/// The connection with another rank. What is sent is written by a thread, so that two ranks that send each other more than
/// their sockets buffer do not wait for each other.
#[derive(Debug)]
struct Link {
    stream: TcpStream,
    outgoing: mpsc::Sender<Frame>,
}

impl Link {
    fn new(stream: TcpStream, limit: Duration) -> std::io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(limit))?;
        stream.set_write_timeout(Some(limit))?;
        let (outgoing, frames) = mpsc::channel::<Frame>();
        let mut writer = stream.try_clone()?;
        thread::Builder::new().name("rank-writer".to_owned()).spawn(move || {
            // A broken connection shows when its other half is read.
            while let Ok(frame) = frames.recv() {
                if frame.write(&mut writer).is_err() {
                    let _ = writer.shutdown(Shutdown::Both);
                    return;
                }
            }
            let _ = writer.shutdown(Shutdown::Write);
        })?;
        Ok(Self { stream, outgoing })
    }
}

impl Link {
    /// The error of a rank if its next byte announces one: only the error can then be received. Waits for [`MOMENT`] at
    /// most.
    fn fault(&self, rank: usize, limit: Duration) -> Option<CollectiveError> {
        let gone = |reason: String| CollectiveError::Gone { rank, reason };
        let mut next = [0];
        // Not by making the socket non-blocking: the writer's half would be, too.
        self.stream.set_read_timeout(Some(MOMENT)).ok()?;
        let found = self.stream.peek(&mut next);
        let restored = self.stream.set_read_timeout(Some(limit));
        match found {
            Ok(0) => Some(gone("its connection was closed".to_owned())),
            Ok(_) if Frame::is_failure(next[0]) => {
                Some(CollectiveError::Failed { rank, reason: "it stopped waiting".to_owned() })
            }
            Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Some(gone(error.to_string()))
            }
            _ => restored.err().map(|error| gone(error.to_string())),
        }
    }
}

/// Ends all connections of a rank, so that what waits in them fails at once.
#[derive(Debug)]
pub(super) struct Breaker {
    streams: Vec<TcpStream>,
    broken: Arc<OnceLock<LostRank>>,
}

impl Breaker {
    /// Breaks all connections because `rank` was lost. Errors of this rank then name the lost rank, which is seldom the
    /// one whose connection is read next.
    pub(super) fn break_all(self, rank: usize, reason: String) {
        // The first one is the cause.
        let _ = self.broken.set(LostRank { rank, reason });
        for stream in self.streams {
            // One that is closed already needs nothing.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl TcpRank {
    pub(super) fn new(rank: usize, streams: Vec<Option<TcpStream>>, limit: Duration) -> std::io::Result<Self> {
        let peers = streams.into_iter().map(|stream| stream.map(|stream| Link::new(stream, limit)).transpose());
        let links = Links { peers: peers.collect::<Result<_, _>>()?, failure: None };
        Ok(Self { rank, limit, links: Mutex::new(links), broken: Arc::default() })
    }

    pub(super) fn breaker(&self) -> std::io::Result<Breaker> {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let streams = links.peers.iter().flatten().map(|link| link.stream.try_clone());
        let streams = streams.collect::<Result<_, _>>()?;
        Ok(Breaker { streams, broken: self.broken.clone() })
    }

    fn receive(&self, rank: usize, link: &Link, call: &Call) -> Result<Payload, CollectiveError> {
        let lost = |reason: String| CollectiveError::Lost { rank, call: call.clone(), reason };
        let frame =
            Frame::read(&mut &link.stream).map_err(|error| match (self.broken.get().cloned(), error.kind()) {
                (Some(LostRank { rank, reason }), _) => CollectiveError::Lost { rank, call: call.clone(), reason },
                (None, ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    CollectiveError::TimedOut { rank, call: call.clone(), limit: self.limit }
                }
                (None, ErrorKind::UnexpectedEof) => lost("its connection was closed".to_owned()),
                _ => lost(error.to_string()),
            })?;
        match frame {
            Frame::Part { call: theirs, part } if theirs == *call => Ok(part),
            Frame::Part { call: theirs, .. } => {
                Err(CollectiveError::Mismatch { rank, theirs, other: self.rank, call: call.clone() })
            }
            Frame::Failed(reason) => Err(lost(format!("it failed: {reason}"))),
        }
    }
}

impl Links {
    /// Tells the other ranks why, and ends all connections.
    fn fail(&mut self, failure: CollectiveError) -> CollectiveError {
        for link in self.peers.iter_mut().filter_map(Option::take) {
            // A rank that is gone does not hear it.
            let _ = link.outgoing.send(Frame::Failed(failure.to_string()));
        }
        self.failure = Some(failure.clone());
        failure
    }
}

impl Collective for TcpRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world(&self) -> usize {
        self.links.lock().unwrap_or_else(PoisonError::into_inner).peers.len()
    }

    fn exchange_among(
        &self,
        members: &[usize],
        call: Call,
        parts: Vec<Payload>,
    ) -> Result<Vec<Payload>, CollectiveError> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = &links.failure {
            return Err(failure.clone());
        }
        assert_eq!(parts.len(), members.len(), "a part for each member");
        for (&rank, part) in members.iter().zip(&parts) {
            if let Some(link) = &links.peers[rank] {
                // The writer is gone only with its connection, which the read below reports.
                let _ = link.outgoing.send(Frame::Part { call: call.clone(), part: part.clone() });
            }
        }
        let received = members.iter().zip(parts).map(|(&rank, mine)| match &links.peers[rank] {
            Some(link) => self.receive(rank, link, &call),
            None => Ok(mine),
        });
        let received: Result<Vec<_>, _> = received.collect();
        received.map_err(|failure| links.fail(failure))
    }

    fn fail(&self, failure: CollectiveError) {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        if links.failure.is_none() {
            links.fail(failure);
        }
    }

    fn fault(&self) -> Option<CollectiveError> {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let broken = || {
            let LostRank { rank, reason } = self.broken.get().cloned()?;
            Some(CollectiveError::Gone { rank, reason })
        };
        let failed = |(rank, link): (usize, &Option<Link>)| link.as_ref()?.fault(rank, self.limit);
        links.failure.clone().or_else(broken).or_else(|| links.peers.iter().enumerate().find_map(failed))
    }
}

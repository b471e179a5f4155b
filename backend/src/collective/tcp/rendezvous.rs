//! Rendezvous of ranks: all know the address of rank 0, which sends each of them the addresses of the others.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::link::TcpRank;
use super::messages::{Heartbeat, MessageLink};
use crate::collective::call::CollectiveError;

const MAGIC: [u8; 8] = *b"tyrank\0\x01";
const MAX_TEXT: usize = 1_024;
const POLL: Duration = Duration::from_millis(10);
/// How long a connection may take to introduce itself.
const GREETING: Duration = Duration::from_secs(5);

/// Address and role with which a process joins.
#[derive(Clone, Debug)]
pub struct Rendezvous {
    /// `HOST:PORT` of rank 0.
    pub address: String,
    /// Number of this process's rank.
    pub rank: usize,
    /// Number of ranks of the worker.
    pub world: usize,
    /// Name of the job, the same on all ranks of a worker: ranks of another worker, or of another layout, are refused.
    pub job: String,
    /// Time that ranks wait until all have joined.
    pub patience: Duration,
    /// Time that ranks wait for each other in every collective.
    pub limit: Duration,
}

impl Rendezvous {
    /// Waits for all ranks and connects each with every other one.
    ///
    /// # Errors
    /// [`CollectiveError::Rendezvous`] names the ranks that did not join in time, or the reason why rank 0 refuses this
    /// one.
    pub fn join(&self) -> Result<TcpRank, CollectiveError> {
        self.check()?;
        let deadline = Instant::now() + self.patience;
        let streams = match self.rank {
            0 => self.host(&self.listen()?, &self.job, deadline)?,
            _ => self.attend(deadline)?,
        };
        TcpRank::new(self.rank, streams, self.limit).map_err(|error| failed(error.to_string()))
    }

    /// Joins the ranks like [`Rendezvous::join`], and opens message links in addition to the collectives: from rank 0
    /// to each of the others in the order of ranks, and from each of them to rank 0.
    ///
    /// # Errors
    /// Errors of [`Rendezvous::join`].
    pub fn join_with_messages(&self, heartbeat: Heartbeat) -> Result<(TcpRank, Vec<MessageLink>), CollectiveError> {
        self.check()?;
        let deadline = Instant::now() + self.patience;
        let job = format!("{}; messages", self.job);
        let (streams, beside) = match self.rank {
            0 => {
                let listener = self.listen()?;
                // The others come again once they have heard of each other.
                (self.host(&listener, &self.job, deadline)?, self.host(&listener, &job, deadline)?)
            }
            _ => (self.attend(deadline)?, vec![Some(self.greet(&job, deadline)?.stream)]),
        };
        let broken = |error: io::Error| failed(error.to_string());
        let rank = TcpRank::new(self.rank, streams, self.limit).map_err(broken)?;
        let mut links = Vec::new();
        for (at, stream) in beside.into_iter().enumerate() {
            if let Some(stream) = stream {
                let breaker = rank.breaker().map_err(broken)?;
                links.push(MessageLink::new(at, stream, heartbeat, breaker).map_err(broken)?);
            }
        }
        Ok((rank, links))
    }

    fn check(&self) -> Result<(), CollectiveError> {
        if self.rank >= self.world {
            return Err(failed(format!("rank {} of {} does not exist", self.rank, self.world)));
        }
        if self.job.len() > MAX_TEXT / 2 {
            return Err(failed(format!("the job's name has more than {} bytes", MAX_TEXT / 2)));
        }
        Ok(())
    }

    fn listen(&self) -> Result<TcpListener, CollectiveError> {
        TcpListener::bind(&self.address)
            .map_err(|error| failed(format!("rank 0 cannot listen at {}: {error}", self.address)))
    }

    /// Rank 0: collects all others, and tells each the addresses.
    fn host(
        &self,
        listener: &TcpListener,
        job: &str,
        deadline: Instant,
    ) -> Result<Vec<Option<TcpStream>>, CollectiveError> {
        let mut came: BTreeMap<usize, (TcpStream, SocketAddr)> = BTreeMap::new();
        while came.len() + 1 < self.world {
            let Some(mut stream) = accept(listener, deadline)? else {
                let missing: Vec<usize> = (1..self.world).filter(|rank| !came.contains_key(rank)).collect();
                return Err(failed(format!("ranks {missing:?} did not join within {:?}", self.patience)));
            };
            // A stranger does not disturb those who belong here.
            let Ok(greeting) = Greeting::read(&mut stream) else { continue };
            // One that ended while it waited may come again.
            came.retain(|rank, (stream, _)| *rank != greeting.rank || !is_closed(stream));
            match self.objection(job, &greeting, &came) {
                None => drop(came.insert(greeting.rank, (stream, greeting.listens))),
                Some(reason) => {
                    tracing::warn!(rank = greeting.rank, reason, "a rank was refused");
                    let _ = write_text(&mut stream, 1, &reason);
                }
            }
        }
        let table = came.values().map(|(_, listens)| listens.to_string()).collect::<Vec<_>>().join(" ");
        let mut streams = vec![None];
        for (rank, (mut stream, _)) in came {
            write_text(&mut stream, 0, &table).map_err(|error| failed(format!("rank {rank} was lost: {error}")))?;
            streams.push(Some(stream));
        }
        Ok(streams)
    }

    fn objection(
        &self,
        own: &str,
        greeting: &Greeting,
        came: &BTreeMap<usize, (TcpStream, SocketAddr)>,
    ) -> Option<String> {
        let Greeting { rank, world, job, .. } = greeting;
        if job != own {
            return Some(format!("rank 0 belongs to {own:?}, rank {rank} to {job:?}"));
        }
        if *world != self.world {
            return Some(format!("rank 0 expects {} ranks, rank {rank} {world}", self.world));
        }
        (*rank == 0 || *rank >= self.world || came.contains_key(rank))
            .then(|| format!("rank {rank} has already joined"))
    }

    /// Introduces a rank other than 0 to rank 0, and waits until all are there.
    fn greet(&self, job: &str, deadline: Instant) -> Result<Greeted, CollectiveError> {
        let broken = |error: io::Error| failed(format!("rank 0 at {}: {error}", self.address));
        let mut stream = connect(&self.address, deadline).map_err(broken)?;
        let own = SocketAddr::new(stream.local_addr().map_err(broken)?.ip(), 0);
        let listener = TcpListener::bind(own).map_err(|error| failed(format!("cannot listen at {own}: {error}")))?;
        let listens = listener.local_addr().map_err(broken)?;
        let greeting = Greeting { rank: self.rank, world: self.world, job: job.to_owned(), listens };
        greeting.write(&mut stream).map_err(broken)?;
        stream.set_read_timeout(Some(left(deadline).max(POLL))).map_err(broken)?;
        let (status, table) = read_text(&mut stream, MAX_TEXT * self.world).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                failed(format!("rank 0 at {} still waits for others after {:?}", self.address, self.patience))
            }
            _ => broken(error),
        })?;
        if status != 0 {
            return Err(failed(table));
        }
        Ok(Greeted { stream, greeting, listener, table })
    }

    /// Connects a rank other than 0: greets rank 0, connects to the ranks below and accepts those above.
    fn attend(&self, deadline: Instant) -> Result<Vec<Option<TcpStream>>, CollectiveError> {
        let Greeted { stream: first, greeting, listener, table } = self.greet(&self.job, deadline)?;
        let mut streams: Vec<Option<TcpStream>> = (0..self.world).map(|_| None).collect();
        streams[0] = Some(first);
        for (rank, address) in (1..self.rank).zip(table.split(' ')) {
            let lost = |error: io::Error| failed(format!("rank {rank} at {address}: {error}"));
            let mut stream = connect(address, deadline).map_err(lost)?;
            greeting.write(&mut stream).map_err(lost)?;
            streams[rank] = Some(stream);
        }
        while streams.iter().filter(|stream| stream.is_none()).count() > 1 {
            let Some(mut stream) = accept(&listener, deadline)? else {
                let missing = (self.rank + 1..self.world).filter(|&rank| streams[rank].is_none());
                let missing: Vec<usize> = missing.collect();
                return Err(failed(format!("ranks {missing:?} did not connect within {:?}", self.patience)));
            };
            let Ok(greeting) = Greeting::read(&mut stream) else { continue };
            let expected = greeting.job == self.job && greeting.rank > self.rank && greeting.rank < self.world;
            if expected && streams[greeting.rank].is_none() {
                streams[greeting.rank] = Some(stream);
            }
        }
        Ok(streams)
    }
}

/// A rank that rank 0 has accepted.
struct Greeted {
    /// Connection to rank 0.
    stream: TcpStream,
    greeting: Greeting,
    /// Listener for the ranks above.
    listener: TcpListener,
    /// Addresses of the listeners of ranks from 1 on.
    table: String,
}

/// Sender of a connection.
struct Greeting {
    rank: usize,
    world: usize,
    job: String,
    listens: SocketAddr,
}

impl Greeting {
    fn write(&self, to: &mut TcpStream) -> io::Result<()> {
        let mut head = MAGIC.to_vec();
        head.extend((self.rank as u32).to_le_bytes());
        head.extend((self.world as u32).to_le_bytes());
        to.write_all(&head)?;
        write_text(to, 0, &self.job)?;
        write_text(to, 0, &self.listens.to_string())
    }

    fn read(from: &mut TcpStream) -> io::Result<Self> {
        from.set_read_timeout(Some(GREETING))?;
        let mut head = [0; 16];
        from.read_exact(&mut head)?;
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize;
        if !head.starts_with(&MAGIC) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a rank"));
        }
        let (rank, world) = (number(8), number(12));
        let (_, job) = read_text(from, MAX_TEXT)?;
        let (_, listens) = read_text(from, MAX_TEXT)?;
        let listens = listens.parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(Self { rank, world, job, listens })
    }
}

fn write_text(to: &mut TcpStream, status: u8, text: &str) -> io::Result<()> {
    let mut message = vec![status];
    message.extend((text.len() as u32).to_le_bytes());
    message.extend(text.as_bytes());
    to.write_all(&message)
}

fn read_text(from: &mut TcpStream, most: usize) -> io::Result<(u8, String)> {
    let mut head = [0; 5];
    from.read_exact(&mut head)?;
    let len = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
    if len > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a text of {len} bytes")));
    }
    let mut text = vec![0; len];
    from.read_exact(&mut text)?;
    let text = String::from_utf8(text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok((head[0], text))
}

/// The next connection; `None` after the deadline.
fn accept(listener: &TcpListener, deadline: Instant) -> Result<Option<TcpStream>, CollectiveError> {
    let broken = |error: io::Error| failed(error.to_string());
    listener.set_nonblocking(true).map_err(broken)?;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).map_err(broken)?;
                return Ok(Some(stream));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !left(deadline).is_zero() => thread::sleep(POLL),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(broken(error)),
        }
    }
}

/// Whether the other side has closed a connection on which it is silent.
fn is_closed(stream: &TcpStream) -> bool {
    let peek = || {
        stream.set_nonblocking(true)?;
        let found = stream.peek(&mut [0]);
        stream.set_nonblocking(false)?;
        found
    };
    peek().map_or_else(|error| error.kind() != io::ErrorKind::WouldBlock, |bytes| bytes == 0)
}

/// Tries until somebody listens there.
fn connect(address: &str, deadline: Instant) -> io::Result<TcpStream> {
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => return Ok(stream),
            Err(error) if left(deadline).is_zero() => return Err(error),
            Err(_) => thread::sleep(POLL),
        }
    }
}

fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

fn failed(reason: String) -> CollectiveError {
    CollectiveError::Rendezvous(reason)
}

//! Messages between rank 0 and another rank outside the collectives: in order, of any size, at any time.
//!
//! Each side sends a heartbeat when it has no other message, so that a lost rank or machine is detected while both are
//! idle, or while one waits for the other in a collective.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::link::Breaker;

/// Takes the place of a length: nothing follows.
const HEARTBEAT: u64 = 0;
/// Takes the place of a length: the sender is done.
const END: u64 = u64::MAX;

/// Interval of heartbeats between ranks, and the time after which a silent rank is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Time between two heartbeats.
    pub every: Duration,
    /// Time without a heartbeat after which a rank is lost.
    pub limit: Duration,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self { every: Duration::from_secs(5), limit: Duration::from_secs(30) }
    }
}

/// The connection to another rank. Dropping it informs the other rank that this one is done.
#[derive(Debug)]
pub struct MessageLink {
    rank: usize,
    sender: MessageSender,
    /// `None` once it was taken.
    incoming: Option<Receiver<Vec<u8>>>,
    lost: Arc<OnceLock<String>>,
    writer: Option<JoinHandle<()>>,
    stream: TcpStream,
}

/// Sends messages over a connection, from any thread, while its [`MessageLink`] exists.
#[derive(Clone, Debug)]
pub struct MessageSender {
    outgoing: Arc<Mutex<Option<Sender<Vec<u8>>>>>,
    lost: Arc<OnceLock<String>>,
}

impl MessageSender {
    /// Sends a message, which must not be empty; false when the other rank is known to be lost, or the connection was
    /// dropped.
    pub fn send(&self, message: Vec<u8>) -> bool {
        let outgoing = self.outgoing.lock().unwrap_or_else(PoisonError::into_inner);
        self.lost.get().is_none() && outgoing.as_ref().is_some_and(|outgoing| outgoing.send(message).is_ok())
    }

    /// Closes the queue: later messages are not sent.
    fn close(&self) {
        *self.outgoing.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl MessageLink {
    /// A link with rank `rank` over `stream`. When that rank is lost, `breaker` also ends the collectives, which would
    /// wait for it.
    pub(super) fn new(rank: usize, stream: TcpStream, heartbeat: Heartbeat, breaker: Breaker) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(heartbeat.limit))?;
        stream.set_write_timeout(Some(heartbeat.limit))?;
        let lost = Arc::new(OnceLock::new());
        let (outgoing, to_write) = channel();
        let (arrived, incoming) = channel();
        let (mut to, mut from) = (stream.try_clone()?, stream.try_clone()?);
        let writer = thread::Builder::new().name(format!("to-rank-{rank}")).spawn(move || {
            // A broken connection shows when its other half is read.
            if write_messages(&mut to, &to_write, heartbeat.every).is_err() {
                let _ = to.shutdown(Shutdown::Both);
            }
        })?;
        let noticed = Arc::clone(&lost);
        thread::Builder::new().name(format!("from-rank-{rank}")).spawn(move || {
            if let Err(error) = read_messages(&mut from, &arrived) {
                let reason = reason(&error, heartbeat.limit);
                let _ = noticed.set(reason.clone());
                breaker.break_all(rank, reason);
            }
        })?;
        let sender = MessageSender { outgoing: Arc::new(Mutex::new(Some(outgoing))), lost: Arc::clone(&lost) };
        Ok(Self { rank, sender, incoming: Some(incoming), lost, writer: Some(writer), stream })
    }

    /// Returns the rank at the other end.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Sends a message, which must not be empty; false when the other rank is known to be lost.
    pub fn send(&self, message: Vec<u8>) -> bool {
        self.sender.send(message)
    }

    /// Returns a sender for other threads.
    pub fn sender(&self) -> MessageSender {
        self.sender.clone()
    }

    /// Waits for the next message; `None` when the other rank is done or lost, or messages are received elsewhere.
    pub fn receive(&self) -> Option<Vec<u8>> {
        self.incoming.as_ref()?.recv().ok()
    }

    /// Returns the messages from the other rank, to be received on another thread until that rank is done or lost.
    pub fn take_incoming(&mut self) -> Option<Receiver<Vec<u8>>> {
        self.incoming.take()
    }

    /// Ends the connection, so that the other rank treats this one as lost.
    pub fn abandon(&self) {
        // One that is broken already needs nothing.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Returns the reason why the other rank is lost, if it is.
    pub fn lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }
}

impl Drop for MessageLink {
    fn drop(&mut self) {
        self.sender.close();
        // It tells that this rank is done; a panic in it has the effect of a lost connection.
        let _ = self.writer.take().map(JoinHandle::join);
    }
}

fn write_messages(to: &mut TcpStream, messages: &Receiver<Vec<u8>>, every: Duration) -> io::Result<()> {
    loop {
        match messages.recv_timeout(every) {
            Ok(message) => {
                to.write_all(&(message.len() as u64).to_le_bytes())?;
                to.write_all(&message)?;
            }
            Err(RecvTimeoutError::Timeout) => to.write_all(&HEARTBEAT.to_le_bytes())?,
            Err(RecvTimeoutError::Disconnected) => {
                to.write_all(&END.to_le_bytes())?;
                return to.shutdown(Shutdown::Write);
            }
        }
    }
}

/// Returns when the other rank is done.
fn read_messages(from: &mut TcpStream, arrived: &Sender<Vec<u8>>) -> io::Result<()> {
    loop {
        let mut len = [0; 8];
        from.read_exact(&mut len)?;
        match u64::from_le_bytes(len) {
            HEARTBEAT => {}
            END => return Ok(()),
            len => {
                // Memory grows with what arrives, not with what a length claims.
                let mut message = Vec::new();
                if from.take(len).read_to_end(&mut message)? as u64 != len {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
                }
                // Nobody reads it when this rank is ending.
                let _ = arrived.send(message);
            }
        }
    }
}

fn reason(error: &io::Error, limit: Duration) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => format!("no heartbeat for {limit:?}"),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => "its connection was closed".to_owned(),
        _ => error.to_string(),
    }
}

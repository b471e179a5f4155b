//! One rank's side of a communicator.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cuda_sim_client::Client;

use crate::exchange::Exchange;
use crate::hub::patience;
use crate::message::{Call, Kind, receive_answer};

#[derive(Debug)]
pub(crate) struct Comm {
    pub(crate) rank: usize,
    pub(crate) world: usize,
    connection: Mutex<Connection>,
    /// A collective failed: the communicator is of no use any more.
    failed: AtomicBool,
}

#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    /// Collectives after which the rank dies: `CUDASIM_NCCL_DIE=RANK:NTH` names the rank and the first that fails.
    left: Option<u64>,
}

/// A collective with its buffers on the device.
#[derive(Debug, Clone)]
pub(crate) struct Collective {
    pub(crate) call: Call,
    pub(crate) send: u64,
    pub(crate) send_bytes: usize,
    pub(crate) receive: u64,
}

/// A message to or from another rank: the rank, the address, the bytes.
pub(crate) type Message = (u32, u64, usize);

/// The messages of a group.
#[derive(Debug, Clone, Default)]
pub(crate) struct Messages {
    pub(crate) sends: Vec<Message>,
    pub(crate) receives: Vec<Message>,
}

impl Comm {
    /// Meets the other ranks at the hub's path.
    pub(crate) fn join(path: &Path, rank: usize, world: usize) -> std::io::Result<Self> {
        let deadline = Instant::now() + patience();
        let mut stream = loop {
            match UnixStream::connect(path) {
                Ok(stream) => break stream,
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        stream.write_all(&[(rank as u32).to_le_bytes(), (world as u32).to_le_bytes()].concat())?;
        let connection = Mutex::new(Connection { stream, left: dies_after(rank) });
        let comm = Self { rank, world, connection, failed: AtomicBool::new(false) };
        let join = Call { kind: Kind::Join, element: 0, operation: 0, root: 0, count: world as u64 };
        comm.exchange(&join, &[], None).map_err(std::io::Error::other)?;
        Ok(comm)
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// Ends the rank's part: the others learn of it in their next collective.
    pub(crate) fn leave(&self) {
        self.failed.store(true, Ordering::SeqCst);
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = connection.stream.shutdown(std::net::Shutdown::Both);
    }

    /// Runs a collective in the order of the stream that calls.
    pub(crate) fn run(&self, collective: &Collective, client: &Client) {
        self.settle(|| self.try_run(collective, client));
    }

    /// Exchanges messages in the order of the stream that calls.
    pub(crate) fn run_messages(&self, messages: &Messages, client: &Client) {
        self.settle(|| self.try_messages(messages, client));
    }

    /// A communicator that failed once does nothing any more.
    fn settle(&self, run: impl FnOnce() -> Result<(), String>) {
        if self.has_failed() {
            return;
        }
        if let Err(message) = run() {
            eprintln!("cuda-sim: rank {} of {}: {message}", self.rank, self.world);
            self.failed.store(true, Ordering::SeqCst);
        }
    }

    fn try_messages(&self, messages: &Messages, client: &Client) -> Result<(), String> {
        let mut exchange = Exchange::default();
        for (peer, address, length) in &messages.sends {
            let data = client.read(*address, *length).map_err(|error| error.to_string())?;
            exchange.sends.push((*peer, data));
        }
        exchange.receives = messages.receives.iter().map(|(peer, _, length)| (*peer, *length as u64)).collect();
        self.die_if_told()?;
        let call = Call { kind: Kind::Exchange, element: 0, operation: 0, root: 0, count: 0 };
        let answer = self.exchange(&call, &exchange.encode(), Some(client))?;
        let mut rest = &answer[..];
        for (_, address, length) in &messages.receives {
            let (data, after) = rest.split_at_checked(*length).ok_or("the answer is too short")?;
            client.write(*address, data).map_err(|error| error.to_string())?;
            rest = after;
        }
        Ok(())
    }

    /// The injected fault.
    fn die_if_told(&self) -> Result<(), String> {
        let dies = {
            let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
            let dies = connection.left == Some(0);
            connection.left = connection.left.map(|left| left.saturating_sub(1));
            dies
        };
        if dies {
            self.leave();
            return Err("injected fault: this rank dies".to_owned());
        }
        Ok(())
    }

    fn try_run(&self, collective: &Collective, client: &Client) -> Result<(), String> {
        let call = &collective.call;
        let sends = call.kind != Kind::Broadcast || call.root as usize == self.rank;
        let data = if sends {
            client.read(collective.send, collective.send_bytes).map_err(|error| error.to_string())?
        } else {
            Vec::new()
        };
        self.die_if_told()?;
        let answer = self.exchange(call, &data, Some(client))?;
        if call.kind != Kind::Reduce || call.root as usize == self.rank {
            client.write(collective.receive, &answer).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Sends the rank's part and waits for the result. Meanwhile the process' other devices go on, since their ranks
    /// may be what everybody waits for.
    fn exchange(&self, call: &Call, data: &[u8], client: Option<&Client>) -> Result<Vec<u8>, String> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = &mut connection.stream;
        let hub = |error: std::io::Error| format!("the hub is gone: {error}");
        call.send(stream, data).map_err(hub)?;
        let mut first = [0];
        stream.set_read_timeout(Some(Duration::from_millis(1))).map_err(hub)?;
        // The hub loses patience first, and says why.
        let deadline = Instant::now() + patience() * 2;
        loop {
            match stream.read_exact(&mut first) {
                Ok(()) => break,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if Instant::now() > deadline {
                        return Err(hub(error));
                    }
                    if let Some(client) = client {
                        let _ = client.progress();
                    }
                }
                Err(error) => return Err(hub(error)),
            }
        }
        stream.set_read_timeout(Some(patience())).map_err(hub)?;
        receive_answer(first[0], stream).map_err(hub)?
    }
}

fn dies_after(rank: usize) -> Option<u64> {
    let set = std::env::var("CUDASIM_NCCL_DIE").ok()?;
    let (who, when) = set.split_once(':')?;
    (who.parse() == Ok(rank)).then(|| when.parse::<u64>().ok()?.checked_sub(1))?
}

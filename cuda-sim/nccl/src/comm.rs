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
use crate::running;

#[derive(Debug)]
pub(crate) struct Comm {
    pub(crate) rank: usize,
    pub(crate) world: usize,
    connection: Mutex<Connection>,
    /// The connection's other handle, to end it while a collective waits.
    end: UnixStream,
    /// A collective failed: the communicator is of no use any more.
    failed: AtomicBool,
}

#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    /// Collectives after which the rank dies: `CUDASIM_NCCL_DIE=RANK:NTH` names the rank and the first that fails.
    left: Option<u64>,
    /// Likewise those after which it is silent: `CUDASIM_NCCL_HANG=RANK:NTH`.
    left_until_silent: Option<u64>,
    /// Likewise those after which its process is killed: `CUDASIM_NCCL_KILL=RANK:NTH`.
    left_until_killed: Option<u64>,
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
        let end = stream.try_clone()?;
        let [left, left_until_silent, left_until_killed] =
            ["DIE", "HANG", "KILL"].map(|fault| collectives_before(&format!("CUDASIM_NCCL_{fault}"), rank));
        let connection = Mutex::new(Connection { stream, left, left_until_silent, left_until_killed });
        let comm = Self { rank, world, connection, end, failed: AtomicBool::new(false) };
        let join = Call { kind: Kind::Join, element: 0, operation: 0, root: 0, count: world as u64 };
        comm.exchange(&join, &[], None).map_err(std::io::Error::other)?;
        Ok(comm)
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// Ends the rank's part, and a collective that waits: the others learn of it in theirs.
    pub(crate) fn leave(&self) {
        self.failed.store(true, Ordering::SeqCst);
        let _ = self.end.shutdown(std::net::Shutdown::Both);
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
        running::begun();
        if self.has_failed() {
            return;
        }
        if let Err(message) = run() {
            if self.has_failed() {
                // It was ended.
                return;
            }
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
        self.fail_if_told()?;
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

    /// The injected faults.
    fn fail_if_told(&self) -> Result<(), String> {
        let [dies, is_silent, is_killed] = {
            let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
            let Connection { left, left_until_silent, left_until_killed, .. } = &mut *connection;
            [left, left_until_silent, left_until_killed].map(|left| {
                let is_now = *left == Some(0);
                *left = left.map(|left| left.saturating_sub(1));
                is_now
            })
        };
        if is_killed {
            eprintln!("cuda-sim: injected fault: the process of rank {} of {} is killed", self.rank, self.world);
            std::process::abort();
        }
        if dies {
            eprintln!("cuda-sim: injected fault: rank {} of {} dies", self.rank, self.world);
            self.leave();
            return Err("it died".to_owned());
        }
        if is_silent {
            eprintln!("cuda-sim: injected fault: rank {} of {} is silent", self.rank, self.world);
        }
        // Until it is ended, or everybody has.
        let deadline = Instant::now() + patience() * 2;
        while is_silent && !self.has_failed() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
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
        self.fail_if_told()?;
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
        let mut first = [0];
        if let Err(error) = call.send(stream, data) {
            // The hub has ended, and perhaps said why.
            stream.read_exact(&mut first).map_err(|_| hub(error))?;
            return receive_answer(first[0], stream).map_err(hub)?;
        }
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

/// How many collectives a rank has before an injected fault.
fn collectives_before(fault: &str, rank: usize) -> Option<u64> {
    let set = std::env::var(fault).ok()?;
    let (who, when) = set.split_once(':')?;
    (who.parse() == Ok(rank)).then(|| when.parse::<u64>().ok()?.checked_sub(1))?
}

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
use crate::neighbours::{Place, are_direct};
use crate::numbers::number;

#[derive(Debug)]
pub(crate) struct Comm {
    pub(crate) rank: usize,
    pub(crate) world: usize,
    /// Group number of the communicator's collectives in the driver.
    pub(crate) group: usize,
    connection: Mutex<Connection>,
    /// Another handle of the connection, to shut it down while a collective waits.
    shutdown_handle: UnixStream,
    /// Devices whose kernels access the rank's buffers directly.
    neighbours: Vec<usize>,
    /// Whether a collective failed, after which the communicator is unusable.
    failed: AtomicBool,
}

#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    /// The fault that comes first, and how many collectives succeed before.
    fault: Option<(Fault, u64)>,
}

/// Fault of a rank in its n-th collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// `CUDASIM_NCCL_KILL=RANK:NTH`: its process is killed.
    Kill,
    /// `CUDASIM_NCCL_DIE=RANK:NTH`: it leaves the communicator.
    Die,
    /// `CUDASIM_NCCL_HANG=RANK:NTH`: it never calls the hub.
    Hang,
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
        let mut comm = Self::new(stream, rank, world, injected_fault(rank))?;
        let join = Call { kind: Kind::Join, element: 0, operation: 0, root: 0, count: world as u64 };
        let device = Client::open().and_then(|client| client.current_device()).map_err(std::io::Error::other)?;
        let own = Place::of_device(device);
        let places = comm.exchange(&join, &own.encode(), None).map_err(std::io::Error::other)?;
        if are_direct() {
            comm.neighbours = own.neighbours(&places);
        }
        Ok(comm)
    }

    fn new(stream: UnixStream, rank: usize, world: usize, fault: Option<(Fault, u64)>) -> std::io::Result<Self> {
        let shutdown_handle = stream.try_clone()?;
        let connection = Mutex::new(Connection { stream, fault });
        let (group, failed, neighbours) = (number(), AtomicBool::new(false), Vec::new());
        Ok(Self { rank, world, group, connection, shutdown_handle, neighbours, failed })
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// Ends the rank's part, and a collective that waits: the others learn of it in theirs.
    pub(crate) fn leave(&self) {
        self.failed.store(true, Ordering::SeqCst);
        self.disconnect();
    }

    fn disconnect(&self) {
        let _ = self.shutdown_handle.shutdown(std::net::Shutdown::Both);
    }

    /// Runs a collective in the order of the stream that calls.
    pub(crate) fn run(&self, collective: &Collective, client: &Client) {
        self.settle(|| self.try_run(collective, client));
    }

    /// Exchanges messages in the order of the stream that calls.
    pub(crate) fn run_messages(&self, messages: &Messages, client: &Client) {
        self.settle(|| self.try_messages(messages, client));
    }

    /// Runs a call, unless the communicator has failed before.
    fn settle(&self, run: impl FnOnce() -> Result<(), String>) {
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

    /// Checks that the devices of ranks in the same process may touch a buffer. Real kernels touch only those that their protocol for
    /// the message's size uses directly; here, it is all of them.
    fn check_neighbours(&self, address: u64, length: usize, client: &Client) -> Result<(), String> {
        if length == 0 {
            return Ok(());
        }
        let check = |device: &usize| client.check_peer(address, length, *device).map_err(|error| error.to_string());
        self.neighbours.iter().try_for_each(check)
    }

    fn try_messages(&self, messages: &Messages, client: &Client) -> Result<(), String> {
        let mut exchange = Exchange::default();
        for (_, address, length) in messages.sends.iter().chain(&messages.receives) {
            self.check_neighbours(*address, *length, client)?;
        }
        for (peer, address, length) in &messages.sends {
            let data = client.read(*address, *length).map_err(|error| error.to_string())?;
            exchange.sends.push((*peer, data));
        }
        exchange.receives = messages.receives.iter().map(|(peer, _, length)| (*peer, *length as u64)).collect();
        self.inject_fault()?;
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

    /// The injected fault, if this collective is the one. A rank that hangs keeps its connection, and the lock of it: nothing of the
    /// communicator goes on until it is aborted or the hub has given up.
    fn inject_fault(&self) -> Result<(), String> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((fault, collectives_before)) = connection.fault.take() else { return Ok(()) };
        if let Some(before) = collectives_before.checked_sub(1) {
            connection.fault = Some((fault, before));
            return Ok(());
        }
        match fault {
            Fault::Kill => {
                eprintln!("cuda-sim: injected fault: the process of rank {} of {} is killed", self.rank, self.world);
                std::process::abort();
            }
            Fault::Die => {
                self.disconnect();
                Err("injected fault: it dies".to_owned())
            }
            Fault::Hang => {
                eprintln!("cuda-sim: injected fault: rank {} of {} is silent", self.rank, self.world);
                // Unasked, the hub only answers when it gives up.
                self.answer(&mut connection.stream, None, None)?;
                Err("an answer to a rank that is silent".to_owned())
            }
        }
    }

    fn try_run(&self, collective: &Collective, client: &Client) -> Result<(), String> {
        let call = &collective.call;
        self.check_neighbours(collective.send, collective.send_bytes, client)?;
        self.check_neighbours(collective.receive, collective.send_bytes, client)?;
        let sends = call.kind != Kind::Broadcast || call.root as usize == self.rank;
        let data = if sends {
            client.read(collective.send, collective.send_bytes).map_err(|error| error.to_string())?
        } else {
            Vec::new()
        };
        self.inject_fault()?;
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
        if let Err(error) = call.send(stream, data) {
            // The hub has ended, and perhaps said why.
            let mut first = [0];
            stream.read_exact(&mut first).map_err(|_| hub_is_gone(error))?;
            return receive_answer(first[0], stream).map_err(hub_is_gone)?;
        }
        // The hub loses patience first, and says why.
        self.answer(stream, Some(Instant::now() + patience() * 2), client)
    }

    /// Waits for the hub's answer.
    fn answer(
        &self,
        stream: &mut UnixStream,
        deadline: Option<Instant>,
        client: Option<&Client>,
    ) -> Result<Vec<u8>, String> {
        let mut first = [0];
        stream.set_read_timeout(Some(Duration::from_millis(1))).map_err(hub_is_gone)?;
        loop {
            match stream.read_exact(&mut first) {
                Ok(()) => break,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                        return Err(hub_is_gone(error));
                    }
                    if self.has_failed() {
                        return Err("another collective of the communicator failed".to_owned());
                    }
                    if let Some(client) = client {
                        let _ = client.progress();
                    }
                }
                Err(error) => return Err(hub_is_gone(error)),
            }
        }
        stream.set_read_timeout(Some(patience())).map_err(hub_is_gone)?;
        receive_answer(first[0], stream).map_err(hub_is_gone)?
    }
}

fn hub_is_gone(error: std::io::Error) -> String {
    format!("the hub is gone: {error}")
}

/// The first of the faults that the environment has for a rank: nothing follows it.
fn injected_fault(rank: usize) -> Option<(Fault, u64)> {
    let faults = [(Fault::Kill, "KILL"), (Fault::Die, "DIE"), (Fault::Hang, "HANG")];
    let of_rank = faults.into_iter().filter_map(|(fault, name)| {
        let set = std::env::var(format!("CUDASIM_NCCL_{name}")).ok()?;
        Some((fault, collectives_before(&set, rank)?))
    });
    of_rank.min_by_key(|(_, before)| *before)
}

/// How many collectives a rank has before a fault that is set as `RANK:NTH`.
fn collectives_before(set: &str, rank: usize) -> Option<u64> {
    let (who, when) = set.split_once(':')?;
    (who.parse() == Ok(rank)).then(|| when.parse::<u64>().ok()?.checked_sub(1))?
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::message::send_answer;

    /// A rank whose second collective has a fault, and the hub's end of its connection.
    fn rank(fault: Fault) -> (Comm, UnixStream) {
        let (stream, hub) = UnixStream::pair().unwrap();
        let comm = Comm::new(stream, 1, 2, Some((fault, 1))).unwrap();
        assert_eq!(comm.inject_fault(), Ok(()));
        (comm, hub)
    }

    /// Lets a rank hang, and ends it.
    fn hang(end: impl FnOnce(&Comm, &mut UnixStream)) -> Result<(), String> {
        let (comm, mut hub) = rank(Fault::Hang);
        std::thread::scope(|scope| {
            let hangs = scope.spawn(|| comm.inject_fault());
            std::thread::sleep(Duration::from_millis(50));
            assert!(!hangs.is_finished());
            hub.set_nonblocking(true).unwrap();
            assert_eq!(hub.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock, "it calls nothing");
            end(&comm, &mut hub);
            let outcome = hangs.join().unwrap();
            assert_eq!(comm.inject_fault(), Ok(()), "once");
            outcome
        })
    }

    #[test]
    fn a_rank_that_hangs_goes_on_when_it_is_aborted_or_the_hub_gives_up() {
        let aborted = hang(|comm, _| comm.leave()).unwrap_err();
        assert!(aborted.contains("the hub is gone") || aborted.contains("another collective"), "{aborted}");
        let answer = Err("rank 1 never called".to_owned());
        assert_eq!(hang(|_, hub| send_answer(hub, &answer).unwrap()), answer.map(|_: Vec<u8>| ()));
    }

    #[test]
    fn a_rank_that_dies_says_so() {
        let (comm, mut hub) = rank(Fault::Die);
        assert_eq!(comm.inject_fault(), Err("injected fault: it dies".to_owned()));
        assert_eq!(hub.read(&mut [0]).unwrap(), 0, "its connection is closed");
    }

    #[test]
    fn faults_are_of_one_rank() {
        assert_eq!([collectives_before("1:4", 1), collectives_before("1:4", 0)], [Some(3), None]);
        assert_eq!([collectives_before("1:0", 1), collectives_before("1", 1)], [None; 2]);
    }
}

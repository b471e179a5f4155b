//! Propagation, during a step, of requests that nobody waits for: only rank 0 knows them by itself.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use trainyard_protocol::{IsAbandoned, RequestId};

use super::message::Message;
use crate::collective::MessageSender;

/// Requests that are remembered: more than a step has.
const REMEMBERED: usize = 256;

/// Tells the ranks beside rank 0.
#[derive(Default)]
pub(super) struct Abandoned {
    /// What ranks that are threads ask.
    threads: Arc<OnceLock<IsAbandoned>>,
    /// Connections with ranks that are processes.
    processes: Vec<MessageSender>,
}

impl Abandoned {
    /// Tells ranks that are processes.
    pub(super) fn of_processes(processes: Vec<MessageSender>) -> Self {
        Self { processes, ..Self::default() }
    }

    /// What a rank that is a thread asks.
    pub(super) fn of_thread(&self) -> IsAbandoned {
        let threads = Arc::clone(&self.threads);
        Arc::new(move |request| threads.get().is_some_and(|is_abandoned| is_abandoned(request)))
    }

    /// Installs the function that tells. Returns what rank 0 asks, which has processes told of each request once.
    pub(super) fn install(&self, is_abandoned: IsAbandoned) -> IsAbandoned {
        // It is installed once.
        let _ = self.threads.set(Arc::clone(&is_abandoned));
        if self.processes.is_empty() {
            return is_abandoned;
        }
        let (processes, told) = (self.processes.clone(), Told::default());
        Arc::new(move |request| {
            let answer = is_abandoned(request);
            if answer && told.add(request) {
                // A path, which alone could fail, is not in it.
                let message = Message::Abandoned(request.clone()).to_bytes().unwrap_or_default();
                // One that is lost is noticed elsewhere.
                processes.iter().for_each(|process| _ = process.send(message.clone()));
            }
            answer
        })
    }
}

/// The last requests that nobody waits for, of which a rank was told.
#[derive(Clone, Default)]
pub(super) struct Told(Arc<Mutex<VecDeque<RequestId>>>);

impl Told {
    /// Adds a request. Returns whether it is new.
    fn add(&self, request: &RequestId) -> bool {
        let mut requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.contains(request) {
            return false;
        }
        requests.push_back(request.clone());
        if requests.len() > REMEMBERED {
            requests.pop_front();
        }
        true
    }

    /// What the rank asks.
    pub(super) fn asked(&self) -> IsAbandoned {
        let told = self.clone();
        Arc::new(move |request| told.0.lock().unwrap_or_else(PoisonError::into_inner).contains(request))
    }
}

/// A message, or why it cannot be read.
type Read = Result<Message<'static>, String>;

/// Reads messages of rank 0 on a thread of their own, so that the engine's thread hears of abandoned requests during a step.
/// Returns all others, in their order.
///
/// # Errors
/// If the thread cannot be started.
pub(super) fn messages(incoming: Receiver<Vec<u8>>, told: Told) -> io::Result<Receiver<Read>> {
    let (forward, messages) = channel();
    thread::Builder::new().name("messages".to_owned()).spawn(move || {
        for bytes in incoming {
            match Message::from_bytes(&bytes) {
                Ok(Message::Abandoned(request)) => _ = told.add(&request),
                read => {
                    if forward.send(read.map_err(|error| error.to_string())).is_err() {
                        return;
                    }
                }
            }
        }
    })?;
    Ok(messages)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::borrow::Cow;

    use super::super::command::Command;
    use super::*;

    #[test]
    fn a_rank_hears_of_abandoned_requests_before_it_takes_the_next_call() {
        let (arrived, incoming) = channel();
        let (told, [gone, other]) = (Told::default(), ["gone", "other"].map(RequestId::new));
        let is_abandoned = told.asked();
        let messages = messages(incoming, told).unwrap();
        let calls = [Command::Step, Command::DropSnapshot("k".into())];
        for command in &calls {
            arrived.send(Message::Call(Cow::Borrowed(command)).to_bytes().unwrap()).unwrap();
            arrived.send(Message::Abandoned(gone.clone()).to_bytes().unwrap()).unwrap();
        }
        arrived.send(vec![1]).unwrap();
        drop(arrived);
        // The thread reads on while nobody takes its messages.
        while !is_abandoned(&gone) {
            thread::yield_now();
        }
        assert!(!is_abandoned(&other));
        let taken: Vec<_> = messages.iter().collect();
        assert_eq!(taken[..2], calls.map(|command| Ok(Message::Call(Cow::Owned(command)))));
        assert!(taken.len() == 3 && taken[2].is_err());
    }

    #[test]
    fn the_oldest_requests_are_forgotten() {
        let told = Told::default();
        let request = |number: usize| RequestId::new(number.to_string());
        assert!((0..=REMEMBERED).all(|number| told.add(&request(number))));
        assert!(!told.add(&request(REMEMBERED)));
        let is_abandoned = told.asked();
        assert!(!is_abandoned(&request(0)) && is_abandoned(&request(1)) && is_abandoned(&request(REMEMBERED)));
    }
}

//! Watches on samples in execution, here and in other processes. Without watches, the cost is one look at a counter.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use trainyard_protocol::limits::MAX_NUM_SAMPLES;
use trainyard_protocol::{RequestId, SampleProgress};

use crate::Timestamp;
use crate::context::lock::lock;

/// A sample with watchers that wait for its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedSample {
    /// Request of the sample.
    pub request: RequestId,
    /// Number that changes when a watcher missed tokens that were reported before: all must be reported again.
    pub generation: u64,
}

/// Watches on all samples.
#[derive(Default)]
pub(crate) struct ProgressWatches {
    watched: Mutex<State>,
    /// Number of watched samples.
    count: AtomicUsize,
}

#[derive(Default)]
struct State {
    samples: BTreeMap<RequestId, Watches>,
    /// Source of numbers for watchers and generations.
    counter: u64,
}

#[derive(Default)]
struct Watches {
    generation: u64,
    here: Vec<Watcher>,
    /// Other processes, with the time until which each watches.
    elsewhere: BTreeMap<String, Timestamp>,
    /// Whether other processes must be asked for all tokens: one that was watched before does not repeat those that it
    /// has sent.
    lacks_tokens: bool,
}

struct Watcher {
    number: u64,
    /// Index of the next token by sequence; 0 for those beyond the end.
    next: Vec<usize>,
    /// Sender of each token, once only, so that a slow reader costs at most the sample's result.
    sender: UnboundedSender<SampleProgress>,
}

impl Watcher {
    /// Passes on new tokens. Returns false if tokens before them are missing.
    fn offer(&mut self, progress: &SampleProgress) -> bool {
        let SampleProgress { sequence, first_index, .. } = *progress;
        if sequence >= MAX_NUM_SAMPLES as usize {
            return true;
        }
        if self.next.len() <= sequence {
            self.next.resize(sequence + 1, 0);
        }
        let Some(next) = self.next.get_mut(sequence) else { return true };
        if first_index > *next {
            return false;
        }
        if let Some(new) = progress.clone().starting_at(*next) {
            *next = new.end_index();
            // A watcher that has stopped reading is about to be removed.
            let _ = self.sender.send(new);
        }
        true
    }
}

impl ProgressWatches {
    /// Watches a sample. Returns the watcher's number and its tokens, each once and in order within its sequence.
    pub(crate) fn watch(&self, request: &RequestId) -> (u64, UnboundedReceiver<SampleProgress>) {
        let (sender, receiver) = unbounded_channel();
        let mut state = lock(&self.watched);
        state.counter += 1;
        let number = state.counter;
        let watches = state.samples.entry(request.clone()).or_default();
        watches.here.push(Watcher { number, next: Vec::new(), sender });
        watches.generation = number;
        watches.lacks_tokens = true;
        self.count.store(state.samples.len(), Ordering::Release);
        (number, receiver)
    }

    /// Ends a watcher's watch.
    pub(crate) fn unwatch(&self, request: &RequestId, number: u64) {
        let mut state = lock(&self.watched);
        if let Some(watches) = state.samples.get_mut(request) {
            watches.here.retain(|watcher| watcher.number != number);
            if watches.here.is_empty() && watches.elsewhere.is_empty() {
                state.samples.remove(request);
            }
        }
        self.count.store(state.samples.len(), Ordering::Release);
    }

    /// Records that another process watches a sample until the given time, and lacks all tokens if `from_start`.
    pub(crate) fn watch_for(&self, request: RequestId, process: String, until: Timestamp, from_start: bool) {
        let mut state = lock(&self.watched);
        state.counter += 1;
        let generation = state.counter;
        let watches = state.samples.entry(request).or_default();
        let known = watches.elsewhere.insert(process, until);
        if from_start || known.is_none() {
            watches.generation = generation;
        }
        self.count.store(state.samples.len(), Ordering::Release);
    }

    /// Returns the watched samples. Expired watches of other processes are removed.
    pub(crate) fn watched(&self, now: Timestamp) -> Vec<WatchedSample> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let mut state = lock(&self.watched);
        state.samples.retain(|_, watches| {
            watches.elsewhere.retain(|_, until| *until > now);
            !watches.here.is_empty() || !watches.elsewhere.is_empty()
        });
        self.count.store(state.samples.len(), Ordering::Release);
        let watched = |(request, watches): (&RequestId, &Watches)| WatchedSample {
            request: request.clone(),
            generation: watches.generation,
        };
        state.samples.iter().map(watched).collect()
    }

    /// Passes tokens on to watchers here. Returns the other processes that watch, and whether all tokens before these
    /// have arrived here.
    pub(crate) fn deliver(&self, request: &RequestId, progress: &[SampleProgress]) -> (Vec<String>, bool) {
        let mut state = lock(&self.watched);
        state.counter += 1;
        let generation = state.counter;
        let Some(watches) = state.samples.get_mut(request) else { return (Vec::new(), true) };
        let mut whole = true;
        for watcher in &mut watches.here {
            for part in progress {
                whole &= watcher.offer(part);
            }
        }
        if !whole {
            (watches.generation, watches.lacks_tokens) = (generation, true);
        }
        (watches.elsewhere.keys().cloned().collect(), whole)
    }

    /// Returns the samples watched here, each with whether other processes must be asked for all its tokens; with
    /// `news`, only those for which they must. The caller must then ask.
    pub(crate) fn announcements(&self, news: bool) -> Vec<(RequestId, bool)> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let mut state = lock(&self.watched);
        let here = state.samples.iter_mut().filter(|(_, watches)| !watches.here.is_empty());
        let due = here.filter(|(_, watches)| watches.lacks_tokens || !news);
        due.map(|(request, watches)| (request.clone(), std::mem::take(&mut watches.lacks_tokens))).collect()
    }

    /// Requests all tokens again, because notifications may have been missed.
    pub(crate) fn suspect_gaps(&self) {
        let mut state = lock(&self.watched);
        state.samples.values_mut().for_each(|watches| watches.lacks_tokens = true);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use proptest::prelude::*;

    use super::*;

    fn progress(sequence: usize, tokens: std::ops::Range<usize>) -> SampleProgress {
        SampleProgress {
            sequence,
            first_index: tokens.start,
            logprobs: tokens.clone().map(|at| -(at as f32)).collect(),
            tokens: tokens.map(|at| at as u32).collect(),
            topk: None,
            end: None,
        }
    }

    fn read(receiver: &mut UnboundedReceiver<SampleProgress>) -> Vec<SampleProgress> {
        std::iter::from_fn(|| receiver.try_recv().ok()).collect()
    }

    #[test]
    fn nobody_watches_unless_asked() {
        let watches = ProgressWatches::default();
        let (id, now) = (RequestId::new("a"), Timestamp(0));
        assert_eq!(watches.watched(now), []);
        assert_eq!(watches.deliver(&id, &[progress(0, 0..2)]), (vec![], true));
        let (number, receiver) = watches.watch(&id);
        assert_eq!(watches.watched(now).len(), 1);
        drop(receiver);
        watches.deliver(&id, &[progress(0, 0..2)]);
        watches.unwatch(&id, number);
        assert_eq!((watches.watched(now), watches.announcements(false)), (vec![], vec![]));
    }

    #[test]
    fn a_gap_asks_for_everything_again() {
        let watches = ProgressWatches::default();
        let id = RequestId::new("a");
        let (_, mut receiver) = watches.watch(&id);
        let first = watches.watched(Timestamp(0));
        assert_eq!(watches.announcements(true), [(id.clone(), true)]);
        assert_eq!(watches.announcements(true), []);
        watches.deliver(&id, &[progress(0, 0..2)]);
        watches.deliver(&id, &[progress(0, 4..6), progress(1, 0..1)]);
        assert_eq!(read(&mut receiver), [progress(0, 0..2), progress(1, 0..1)]);
        let second = watches.watched(Timestamp(0));
        assert!(second[0].generation > first[0].generation);
        assert_eq!(watches.announcements(true), [(id.clone(), true)]);
        watches.deliver(&id, &[progress(0, 0..6), progress(1, 0..2)]);
        assert_eq!(read(&mut receiver), [progress(0, 2..6), progress(1, 1..2)]);
        assert_eq!(watches.announcements(false), [(id, false)]);
    }

    #[test]
    fn watches_of_other_processes_run_out() {
        let watches = ProgressWatches::default();
        let id = RequestId::new("a");
        watches.watch_for(id.clone(), "p".to_owned(), Timestamp(100), true);
        let first = watches.watched(Timestamp(99));
        assert_eq!(watches.deliver(&id, &[progress(0, 0..1)]), (vec!["p".to_owned()], true));
        watches.watch_for(id.clone(), "p".to_owned(), Timestamp(200), false);
        assert_eq!(watches.watched(Timestamp(150)), first);
        watches.watch_for(id.clone(), "q".to_owned(), Timestamp(200), false);
        assert_ne!(watches.watched(Timestamp(150)), first);
        assert_eq!(watches.announcements(false), []);
        assert_eq!(watches.watched(Timestamp(200)), []);
    }

    #[test]
    fn sequences_beyond_the_limit_are_ignored() {
        let watches = ProgressWatches::default();
        let id = RequestId::new("a");
        let (_, mut receiver) = watches.watch(&id);
        watches.deliver(&id, &[progress(usize::MAX, 0..1)]);
        assert_eq!(read(&mut receiver), []);
    }

    proptest! {
        /// Tokens come once and in order, whatever is lost, doubled or late.
        #[test]
        fn tokens_come_once_and_in_order(parts in prop::collection::vec((0usize..2, 0usize..12, 0usize..5), 0..40)) {
            let watches = ProgressWatches::default();
            let id = RequestId::new("a");
            let (_, mut receiver) = watches.watch(&id);
            for (sequence, start, length) in parts {
                watches.deliver(&id, &[progress(sequence, start..start + length)]);
            }
            watches.deliver(&id, &[progress(0, 0..17), progress(1, 0..17)]);
            let got = read(&mut receiver);
            for sequence in 0..2 {
                let own = got.iter().filter(|part| part.sequence == sequence);
                let tokens: Vec<u32> = own.flat_map(|part| part.tokens.clone()).collect();
                prop_assert_eq!(tokens, (0..17).collect::<Vec<u32>>());
            }
        }
    }
}

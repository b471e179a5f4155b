//! Tokens that wait to be sent to other processes.

use std::collections::BTreeMap;
use std::sync::Mutex;

use trainyard_protocol::{RequestId, SampleProgress};

use crate::context::lock::lock;

/// Maximum number of tokens that may wait to be sent; more are dropped, and requested again.
const MAX_WAITING: usize = 1 << 16;

/// Tokens to be sent to other processes.
#[derive(Default)]
pub(crate) struct ProgressOutbox {
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// Tokens by receiving process.
    lines: BTreeMap<String, Vec<(RequestId, SampleProgress)>>,
    tokens: usize,
}

impl ProgressOutbox {
    /// Adds tokens for a process.
    pub(crate) fn push(&self, process: String, request: &RequestId, progress: &[SampleProgress]) {
        let mut waiting = lock(&self.waiting);
        let tokens: usize = progress.iter().map(|progress| progress.tokens.len()).sum();
        if waiting.tokens.saturating_add(tokens) > MAX_WAITING {
            tracing::debug!(%request, process, "sample progress dropped: too many updates wait to be sent");
            return;
        }
        waiting.tokens += tokens;
        waiting.lines.entry(process).or_default().extend(progress.iter().map(|part| (request.clone(), part.clone())));
    }

    /// Takes the waiting tokens, by process.
    pub(crate) fn take(&self) -> BTreeMap<String, Vec<(RequestId, SampleProgress)>> {
        std::mem::take(&mut *lock(&self.waiting)).lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_bounded() {
        let (outbox, id) = (ProgressOutbox::default(), RequestId::new("a"));
        let half = SampleProgress {
            sequence: 0,
            first_index: 0,
            tokens: vec![1; MAX_WAITING / 2],
            logprobs: vec![0.0; MAX_WAITING / 2],
            topk: None,
            end: None,
        };
        for _ in 0..3 {
            outbox.push("p".to_owned(), &id, std::slice::from_ref(&half));
        }
        assert_eq!(outbox.take().remove("p").map(|parts| parts.len()), Some(2));
        outbox.push("q".to_owned(), &id, &[half]);
        assert_eq!(outbox.take().into_keys().collect::<Vec<_>>(), ["q"]);
    }
}

//! Reports the tokens of watched samples while the engine executes them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use trainyard_protocol::{Engine, RequestId, SampleProgress};
use trainyard_scheduler::WatchedSample;

/// Minimum time between two reports, so that tokens of several steps travel together.
const INTERVAL: Duration = Duration::from_millis(50);

/// Reported tokens of the watched samples.
#[derive(Default)]
pub(super) struct ProgressReports {
    samples: BTreeMap<RequestId, ReportedSample>,
    last: Option<Instant>,
}

struct ReportedSample {
    generation: u64,
    /// Reported tokens by sequence.
    tokens: Vec<usize>,
}

impl ProgressReports {
    /// Returns whether a report is due.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.last.is_none_or(|last| now.saturating_duration_since(last) >= INTERVAL)
    }

    /// Returns tokens of the watched samples that have not been reported yet.
    pub(super) fn collect(
        &mut self,
        engine: &dyn Engine,
        watched: Vec<WatchedSample>,
        now: Instant,
    ) -> Vec<(RequestId, Vec<SampleProgress>)> {
        self.last = Some(now);
        let mut before = std::mem::take(&mut self.samples);
        let mut reports = Vec::new();
        for WatchedSample { request, generation } in watched {
            let earlier = before.remove(&request).filter(|earlier| earlier.generation == generation);
            let mut sample = earlier.unwrap_or(ReportedSample { generation, tokens: Vec::new() });
            let progress = engine.sampled_since(&request, &sample.tokens);
            for part in &progress {
                if sample.tokens.len() <= part.sequence {
                    sample.tokens.resize(part.sequence + 1, 0);
                }
                if let Some(tokens) = sample.tokens.get_mut(part.sequence) {
                    *tokens = part.end_index();
                }
            }
            self.samples.insert(request.clone(), sample);
            if !progress.is_empty() {
                reports.push((request, progress));
            }
        }
        reports
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use trainyard_protocol::{BaseModel, Completion, Operation, Prepare, RunId, TenantShare};

    use super::*;

    /// Samples with the given number of tokens in each sequence.
    struct Counts(BTreeMap<RequestId, Vec<usize>>);

    impl Engine for Counts {
        fn models(&self) -> Vec<BaseModel> {
            Vec::new()
        }

        fn preparer(&self) -> Arc<dyn Prepare> {
            crate::engine::testing::preparer()
        }

        fn start(&mut self, _: RequestId, _: TenantShare, _: Operation) {}

        fn step(&mut self) -> Vec<Completion> {
            Vec::new()
        }

        fn is_idle(&self) -> bool {
            false
        }

        fn sampled_since(&self, id: &RequestId, known: &[usize]) -> Vec<SampleProgress> {
            let sequences = self.0.get(id).into_iter().flatten().enumerate();
            let new =
                sequences.map(|(sequence, &tokens)| (sequence, known.get(sequence).map_or(0, |known| *known), tokens));
            let new = new.filter(|(_, known, tokens)| known < tokens);
            new.map(|(sequence, known, tokens)| SampleProgress {
                sequence,
                first_index: known,
                tokens: vec![0; tokens - known],
                logprobs: vec![0.0; tokens - known],
                topk: None,
                end: None,
            })
            .collect()
        }

        fn cancel(&mut self, _: &BTreeSet<RequestId>) {}

        fn unload_run(&mut self, _: &RunId) {}

        fn drop_snapshot(&mut self, _: &str) {}
    }

    fn watched(id: &str, generation: u64) -> WatchedSample {
        WatchedSample { request: RequestId::new(id), generation }
    }

    /// Request, sequence, first index and number of tokens of each report.
    fn parts(reports: &[(RequestId, Vec<SampleProgress>)]) -> Vec<(&str, usize, usize, usize)> {
        let all = reports.iter().flat_map(|(request, parts)| parts.iter().map(move |part| (request, part)));
        all.map(|(request, part)| (request.as_str(), part.sequence, part.first_index, part.tokens.len())).collect()
    }

    #[test]
    fn only_what_is_new_is_reported_until_somebody_lacks_it() {
        let mut reports = ProgressReports::default();
        let start = Instant::now();
        let mut engine =
            Counts([("a", vec![2, 0]), ("b", vec![5])].map(|(id, counts)| (RequestId::new(id), counts)).into());
        assert!(reports.is_due(start));
        let first = reports.collect(&engine, vec![watched("a", 1), watched("other", 2)], start);
        assert_eq!(parts(&first), [("a", 0, 0, 2)]);
        assert!(!reports.is_due(start + INTERVAL / 2) && reports.is_due(start + INTERVAL));
        engine.0.insert(RequestId::new("a"), vec![2, 3]);
        let second = reports.collect(&engine, vec![watched("a", 1), watched("b", 3)], start);
        assert_eq!(parts(&second), [("a", 1, 0, 3), ("b", 0, 0, 5)]);
        assert_eq!(parts(&reports.collect(&engine, vec![watched("a", 1), watched("b", 3)], start)), []);
        let again = reports.collect(&engine, vec![watched("a", 4)], start);
        assert_eq!(parts(&again), [("a", 0, 0, 2), ("a", 1, 0, 3)]);
        // Who is watched again begins anew.
        assert_eq!(parts(&reports.collect(&engine, vec![watched("b", 3)], start)), [("b", 0, 0, 5)]);
    }
}

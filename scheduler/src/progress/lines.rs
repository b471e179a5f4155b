//! Encodes progress as text for notifications.

use trainyard_protocol::{RequestId, SampleProgress};

use crate::processes::signals::MAX_BYTES;

/// Maximum number of bytes of a token with its log-probability in JSON, and of a candidate.
const TOKEN_BYTES: usize = 32;
/// Maximum number of bytes of a line apart from its tokens; ids of requests are far shorter.
const FRAME_BYTES: usize = 512;
/// Maximum number of candidates per token with which progress is sent; with more, tokens come with the result.
const MAX_CANDIDATES: usize = 100;

/// Encodes progress as notifications: a line of JSON for each part of a sequence.
pub(crate) fn encode(parts: &[(RequestId, SampleProgress)]) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for (request, progress) in parts {
        for part in split(progress) {
            let Ok(line) = serde_json::to_string(&(request, part)) else { continue };
            match texts.last_mut().filter(|text| text.len() + line.len() < MAX_BYTES) {
                Some(text) => {
                    text.push('\n');
                    text.push_str(&line);
                }
                None if line.len() <= MAX_BYTES => texts.push(line),
                None => {}
            }
        }
    }
    texts
}

/// Splits progress into parts that each fit into a notification.
fn split(progress: &SampleProgress) -> Vec<SampleProgress> {
    let candidates = progress.topk.as_ref().map_or(0, |topk| topk.k);
    if candidates > MAX_CANDIDATES {
        return Vec::new();
    }
    let most = (MAX_BYTES - FRAME_BYTES) / (TOKEN_BYTES * (1 + candidates));
    let mut parts = Vec::new();
    let mut rest = Some(progress.clone());
    while let Some(part) = rest {
        let next = part.first_index.saturating_add(most);
        rest = part.clone().starting_at(next);
        parts.push(part.ending_at(next));
    }
    parts
}

/// Decodes the readable lines of a notification.
pub(crate) fn decode(text: &str) -> impl Iterator<Item = (RequestId, SampleProgress)> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use trainyard_protocol::{StopReason, TopkLogprobs};

    use super::*;

    fn progress(tokens: usize, k: usize) -> SampleProgress {
        let logprobs = |count: usize| (0..count).map(|at| -1.0e-30 / (at + 3) as f32).collect::<Vec<f32>>();
        SampleProgress {
            sequence: 1_000,
            first_index: 99_999,
            tokens: vec![u32::MAX; tokens],
            logprobs: logprobs(tokens),
            topk: (k > 0).then(|| TopkLogprobs {
                k,
                token_ids: vec![u32::MAX; tokens * k],
                logprobs: logprobs(tokens * k),
            }),
            end: Some(StopReason::Length),
        }
    }

    #[test]
    fn progress_is_read_as_sent_and_fits_into_notifications() {
        let id = RequestId::new("01234567-89ab-cdef-0123-456789abcdef");
        for (tokens, k) in [(1, 0), (1, 5), (1_000, 0), (50, 20), (7, MAX_CANDIDATES)] {
            let sent = progress(tokens, k);
            let texts = encode(&[(id.clone(), sent.clone()), (id.clone(), progress(2, 0))]);
            assert!(texts.iter().all(|text| text.len() <= MAX_BYTES));
            let mut parts: Vec<_> = texts.iter().flat_map(|text| decode(text)).collect();
            assert_eq!(parts.pop().unwrap(), (id.clone(), progress(2, 0)));
            let mut next = sent.first_index;
            for (at, (request, part)) in parts.iter().enumerate() {
                assert_eq!((request, part.first_index), (&id, next));
                let expected = sent.clone().starting_at(next).unwrap().ending_at(part.end_index());
                assert_eq!(*part, expected);
                assert_eq!(part.end.is_some(), at + 1 == parts.len());
                next = part.end_index();
            }
            assert_eq!(next, sent.end_index());
        }
        assert_eq!(encode(&[(id, progress(1, MAX_CANDIDATES + 1))]), Vec::<String>::new());
    }

    #[test]
    fn unreadable_lines_are_ignored() {
        let line = serde_json::to_string(&(RequestId::new("a"), progress(1, 0))).unwrap();
        let text = format!("\n{{}}\n[\"a\", 1]\n{line}\nx");
        assert_eq!(decode(&text).collect::<Vec<_>>(), [(RequestId::new("a"), progress(1, 0))]);
    }
}

//! The part of a sample that is stored for its run's page: prompt, completions and their log-probabilities, within
//! limits.

use bytes::Bytes;
use prost::Message;
use trainyard_images::Format;
use trainyard_protocol::{ImageSpan, SampleResult, SampledSequence, StopReason};
use trainyard_scheduler::{NewRunSample, SampleStorage};

/// Maximum number of tokens of a prompt that are stored, from its end.
const PROMPT: usize = 4_096;
/// Maximum number of tokens of a completion that are stored, from its start.
const COMPLETION: usize = 4_096;
/// Maximum number of completions of a sample that are stored.
const COMPLETIONS: usize = 4;

/// Maximum number of images of a prompt that are stored, and of the bytes of their files together.
const IMAGES: usize = 16;
const IMAGE_BYTES: usize = 128 << 10;

/// The stored form of a sample.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StoredSample {
    /// The length of the whole prompt in tokens.
    #[prost(uint32, tag = "1")]
    pub(crate) prompt_tokens: u32,
    /// The last tokens of the prompt.
    #[prost(uint32, repeated, tag = "2")]
    pub(crate) prompt: Vec<u32>,
    /// The number of completions that were sampled.
    #[prost(uint32, tag = "3")]
    pub(crate) sequences: u32,
    /// First completions of the sample.
    #[prost(message, repeated, tag = "4")]
    pub(crate) stored: Vec<StoredSequence>,
    /// Images among the stored tokens of the prompt.
    #[prost(message, repeated, tag = "5")]
    pub(crate) images: Vec<StoredImage>,
}

/// The stored form of an image.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StoredImage {
    /// Index of the image's first token among the stored ones.
    #[prost(uint32, tag = "1")]
    pub(crate) start: u32,
    /// The number of its tokens.
    #[prost(uint32, tag = "2")]
    pub(crate) tokens: u32,
    /// Width of the image in pixels.
    #[prost(uint32, tag = "3")]
    pub(crate) width: u32,
    /// Height of the image in pixels.
    #[prost(uint32, tag = "4")]
    pub(crate) height: u32,
    /// Media type of the file.
    #[prost(string, tag = "5")]
    pub(crate) media_type: String,
    /// The file; empty if it is too large to be stored.
    #[prost(bytes = "bytes", tag = "6")]
    pub(crate) data: Bytes,
}

/// The stored form of a completion.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StoredSequence {
    /// The length of the whole completion in tokens.
    #[prost(uint32, tag = "1")]
    pub(crate) sampled: u32,
    /// The first tokens of the completion.
    #[prost(uint32, repeated, tag = "2")]
    pub(crate) tokens: Vec<u32>,
    /// The log-probabilities of these tokens.
    #[prost(float, repeated, tag = "3")]
    pub(crate) logprobs: Vec<f32>,
    /// Whether a stop ended the completion, not the limit of its length.
    #[prost(bool, tag = "4")]
    pub(crate) stopped: bool,
}

/// The prompt of a sample that will be stored, and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PromptToStore {
    storage: SampleStorage,
    tokens: u32,
    last: Vec<u32>,
    images: Vec<StoredImage>,
}

impl PromptToStore {
    pub(crate) fn new(storage: SampleStorage, prompt: &[i64], images: &[ImageSpan]) -> Self {
        let first = prompt.len().saturating_sub(PROMPT);
        let last = prompt.get(first..).unwrap_or_default();
        // They were checked against the vocabulary.
        let last = last.iter().map(|token| u32::try_from(*token).unwrap_or_default()).collect();
        Self { storage, tokens: count(prompt.len()), last, images: stored_images(images, first) }
    }

    /// Makes the record of the completed sample.
    pub(crate) fn with(self, result: &SampleResult) -> NewRunSample {
        let Self { storage, tokens, last, images } = self;
        let stored = StoredSample {
            prompt_tokens: tokens,
            prompt: last,
            sequences: count(result.sequences.len()),
            stored: result.sequences.iter().take(COMPLETIONS).map(sequence).collect(),
            images,
        };
        NewRunSample { storage, content: stored.encode_to_vec().into() }
    }
}

impl StoredSample {
    /// Reads what [`PromptToStore::with`] wrote.
    pub(crate) fn read(content: Bytes) -> Result<Self, prost::DecodeError> {
        Self::decode(content)
    }
}

/// The last images that lie behind the token `first`.
fn stored_images(images: &[ImageSpan], first: usize) -> Vec<StoredImage> {
    let mut left = IMAGE_BYTES;
    let whole = images.iter().rev().take_while(|span| span.start >= first).take(IMAGES);
    let mut stored: Vec<_> = whole
        .map(|span| {
            let file = &span.image.data;
            let data = if file.len() <= left { Bytes::copy_from_slice(file) } else { Bytes::new() };
            left -= data.len();
            let media_type = match span.image.format {
                Format::Png => "image/png",
                Format::Jpeg => "image/jpeg",
            };
            StoredImage {
                start: count(span.start - first),
                tokens: count(span.tokens),
                width: span.image.counted.width,
                height: span.image.counted.height,
                media_type: media_type.to_owned(),
                data,
            }
        })
        .collect();
    stored.reverse();
    stored
}

fn sequence(found: &SampledSequence) -> StoredSequence {
    StoredSequence {
        sampled: count(found.tokens.len()),
        tokens: found.tokens.iter().take(COMPLETION).copied().collect(),
        logprobs: found.logprobs.iter().take(COMPLETION).copied().collect(),
        stopped: found.stop_reason == StopReason::Stop,
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use trainyard_images::Size;
    use trainyard_protocol::{Image, ImageDigest, RunId};

    use super::*;

    fn result(sequences: usize, tokens: u32) -> SampleResult {
        let sequence = SampledSequence {
            stop_reason: StopReason::Length,
            tokens: (0..tokens).collect(),
            logprobs: (0..tokens).map(|token| -(token as f32)).collect(),
            topk: None,
        };
        SampleResult {
            sequences: vec![sequence; sequences],
            prompt_logprobs: None,
            topk_prompt_logprobs: None,
            target_prompt_logprobs: None,
            prompt_alt_tokens: None,
            prompt_cache_hit_tokens: 0,
        }
    }

    fn stored(prompt: &[i64], result: &SampleResult) -> StoredSample {
        let storage = SampleStorage { run: RunId::new("s:train:0"), newest: 3 };
        let new = PromptToStore::new(storage.clone(), prompt, &[]).with(result);
        assert_eq!(new.storage, storage);
        StoredSample::read(new.content).unwrap()
    }

    #[test]
    fn a_sample_is_stored_as_it_was() {
        let found = stored(&[7, 8, 9], &result(2, 3));
        assert_eq!((found.prompt_tokens, found.prompt.as_slice(), found.sequences), (3, &[7, 8, 9][..], 2));
        assert_eq!((found.stored.len(), found.stored[1].tokens.as_slice()), (2, &[0, 1, 2][..]));
        assert_eq!((found.stored[1].logprobs.as_slice(), found.stored[1].stopped), (&[0.0, -1.0, -2.0][..], false));
    }

    fn span(start: usize, bytes: usize) -> ImageSpan {
        let (counted, digest) = (Size::new(64, 32), ImageDigest([0; 32]));
        let image = Image { format: Format::Png, data: vec![7; bytes].into(), counted, digest };
        ImageSpan { start, tokens: 2, image }
    }

    #[test]
    fn the_last_images_are_stored_within_limits() {
        let found = stored_images(&[span(1, 5), span(11, 5), span(20, IMAGE_BYTES), span(30, 8)], 10);
        let shown: Vec<_> = found.iter().map(|image| (image.start, image.data.len())).collect();
        assert_eq!(shown, [(1, 5), (10, 0), (20, 8)]);
        assert_eq!((found[0].tokens, found[0].width, found[0].height), (2, 64, 32));
        assert_eq!(found[0].media_type, "image/png");
        let many: Vec<_> = (0..100).map(|at| span(2 * at, 1)).collect();
        assert_eq!(stored_images(&many, 0).len(), IMAGES);
    }

    #[test]
    fn of_a_large_sample_a_part_is_stored_with_the_size_of_the_whole() {
        let prompt: Vec<i64> = (0..10_000).collect();
        let result = result(9, 5_000);
        let found = stored(&prompt, &result);
        assert_eq!((found.prompt_tokens, found.prompt.len(), found.prompt.last()), (10_000, PROMPT, Some(&9_999)));
        assert_eq!((found.sequences, found.stored.len()), (9, COMPLETIONS));
        let first = &found.stored[0];
        assert_eq!((first.sampled, first.tokens.len(), first.logprobs.len()), (5_000, COMPLETION, COMPLETION));
        let storage = SampleStorage { run: RunId::new("s:train:0"), newest: 3 };
        assert!(PromptToStore::new(storage, &prompt, &[]).with(&result).content.len() < 160 << 10);
    }
}

//! Samplers of a base model, a checkpoint or the current weights of a run.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::codec;
use crate::error::Error;
use crate::future::{Submitted, protobuf};
use crate::generated::types::{InputChunk, ModelInput, SampleRequest, SamplingParams};
use crate::image::{Image, Piece, PlacedImages, pieces};
use crate::output::SampleOutput;
use crate::resample::{Resample, SamplingSession};
use crate::session::Session;

/// Fixed weights to sample from. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Sampler {
    inner: Arc<SamplingSession>,
    /// Session whose heartbeats continue as long as a sampler exists.
    _session: Arc<Session>,
}

/// Options for completing a prompt.
#[derive(Clone, Debug)]
pub struct SampleOptions {
    params: SamplingParams,
    num_samples: u32,
    prompt_logprobs: bool,
    topk_prompt_logprobs: u32,
    topk_sample_logprobs: u32,
    images: PlacedImages,
}

impl Default for SampleOptions {
    fn default() -> Self {
        Self {
            params: SamplingParams::new(),
            num_samples: 1,
            prompt_logprobs: false,
            topk_prompt_logprobs: 0,
            topk_sample_logprobs: 0,
            images: PlacedImages::new(),
        }
    }
}

impl SampleOptions {
    /// Returns one completion at temperature 1, up to the context's limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets all settings of sampling at once.
    #[must_use]
    pub fn params(mut self, params: SamplingParams) -> Self {
        self.params = params;
        self
    }

    /// Limits the number of tokens to sample.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.params = self.params.max_tokens(tokens);
        self
    }

    /// Sets the divisor of the logits; 0 means greedy decoding.
    #[must_use]
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.params = self.params.temperature(temperature);
        self
    }

    /// Sets a seed, which makes sampling repeatable.
    #[must_use]
    pub fn seed(mut self, seed: i64) -> Self {
        self.params = self.params.seed(seed);
        self
    }

    /// Sets the strings, besides the model's end tokens, at which a completion ends. An empty list turns all stopping
    /// off.
    #[must_use]
    pub fn stop<T: Into<String>>(mut self, texts: impl IntoIterator<Item = T>) -> Self {
        let texts: Vec<String> = texts.into_iter().map(Into::into).collect();
        self.params = self.params.stop(texts.into());
        self
    }

    /// Sets the number of completions of the prompt.
    #[must_use]
    pub fn num_samples(mut self, samples: u32) -> Self {
        self.num_samples = samples;
        self
    }

    /// Sets whether the prompt's log-probabilities are returned too.
    #[must_use]
    pub fn prompt_logprobs(mut self, wanted: bool) -> Self {
        self.prompt_logprobs = wanted;
        self
    }

    /// Returns the `k` most likely candidates for each position of the prompt.
    #[must_use]
    pub fn topk_prompt_logprobs(mut self, k: u32) -> Self {
        self.topk_prompt_logprobs = k;
        self
    }

    /// Places an image before the prompt's token of this index.
    #[must_use]
    pub fn image(mut self, before: usize, image: Image) -> Self {
        self.images.entry(before).or_default().push(image);
        self
    }

    /// Returns the `k` most likely candidates for each sampled token.
    #[must_use]
    pub fn topk_sample_logprobs(mut self, k: u32) -> Self {
        self.topk_sample_logprobs = k;
        self
    }
}

impl Sampler {
    pub(crate) fn new(session: Arc<Session>, id: &str) -> Self {
        Self { inner: Arc::new(SamplingSession::new(session.api.clone(), id)), _session: session }
    }

    /// Returns the id of the sampling session.
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    /// Completes a prompt, with a log-probability for each sampled token.
    ///
    /// # Errors
    ///
    /// The server refuses the request or does not answer.
    pub async fn sample(&self, prompt: &[i32], options: &SampleOptions) -> Result<Submitted<SampleOutput>, Error> {
        let chunks = pieces(prompt, &options.images).into_iter().map(chunk).collect();
        let mut body = SampleRequest::new(ModelInput::new(chunks), &*self.inner.id, 0)
            .sampling_params(options.params.clone())
            .num_samples(options.num_samples)
            .prompt_logprobs(options.prompt_logprobs);
        body.topk_prompt_logprobs = Some(options.topk_prompt_logprobs);
        body.topk_sample_logprobs = Some(options.topk_sample_logprobs);
        let resample = Resample { session: self.inner.clone(), body };
        let request_id = resample.submit().await?;
        let read = |answer: &_| protobuf(answer, codec::sample_output);
        Ok(Submitted::new(self.inner.api.clone(), request_id, read).resampling(resample))
    }
}

fn chunk(piece: Piece<'_>) -> InputChunk {
    match piece {
        Piece::Tokens(tokens) => {
            InputChunk::new().type_("encoded_text").tokens(tokens.iter().map(|id| i64::from(*id)).collect())
        }
        Piece::Image(image) => {
            let chunk = InputChunk::new().type_("image").data(STANDARD.encode(&image.data)).format(image.format);
            match image.expected_tokens {
                Some(tokens) => chunk.expected_tokens(tokens.into()),
                None => chunk,
            }
        }
    }
}

//! Samples, in one form from the check at submission through the store to the engine.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::limits::scored_tokens;
use crate::{DecodedImages, ImageSpan, OpError, SamplingControls, SessionId, Tensor, TensorValues};

/// Weights from which a sample is drawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SamplerSource {
    /// A base model without an adapter.
    Base {
        /// Name of the base model.
        model: String,
    },
    /// A sampler checkpoint on disk.
    Checkpoint {
        /// Name of the checkpoint's base model.
        base_model: String,
        /// Folder of the checkpoint.
        dir: PathBuf,
    },
    /// An in-memory snapshot made by [`SaveSampler`](crate::SaveSampler).
    Snapshot {
        /// Key of the snapshot.
        key: String,
    },
}

/// Condition on which a sample ends, apart from `max_tokens`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stop {
    /// Ends at the model's end tokens.
    Default,
    /// Ends only at the length limit.
    Nothing,
    /// Ends at the model's end tokens, or once the decoded text contains one of these strings.
    Strings(Vec<String>),
    /// Ends at the model's end tokens or one of these tokens.
    Tokens(Vec<i64>),
}

/// Parameters of sampling, applied in this order: [`SamplingControls`], temperature, `min_p`, top-k, top-p.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplingParams {
    /// Maximum number of tokens to sample, at least 1; `None` samples up to the context limit.
    pub max_tokens: Option<u32>,
    /// Seed of the random streams, below 2^63: completion `i` uses the stream (seed, i).
    pub seed: u64,
    /// Condition for ending early.
    pub stop: Stop,
    /// Divisor of the logits; 0 means greedy decoding.
    pub temperature: f32,
    /// Number of most likely tokens to keep; `None` keeps all.
    pub top_k: Option<u32>,
    /// Probability that the smallest set of kept tokens must reach, above 0; 1 keeps all tokens.
    pub top_p: f32,
    /// Penalties and other changes of the logits.
    #[serde(flatten)]
    pub controls: SamplingControls,
}

/// A request to sample completions of a prompt and to compute log-probabilities. It is complete: executing it again
/// gives the same bits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Prompt token ids, at least one.
    pub prompt: Vec<i64>,
    /// Images among the prompt's tokens, in ascending order and without overlap.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageSpan>,
    /// Number of completions to sample.
    pub num_samples: u32,
    /// Parameters of the sampling.
    #[serde(flatten)]
    pub params: SamplingParams,
    /// Whether the prompt's log-probabilities are returned (at temperature 1).
    pub prompt_logprobs: bool,
    /// Number of last prompt positions whose log-probabilities are returned; all positions if absent.
    pub prompt_logprobs_last_n: Option<u32>,
    /// Number of most likely candidates per prompt position; 0 turns it off.
    pub topk_prompt_logprobs: u32,
    /// Number of most likely candidates per sampled token; 0 turns it off.
    pub topk_sample_logprobs: u32,
    /// Token ids that are scored at the prompt's positions.
    pub target_prompt_logprobs: Option<PromptTargets>,
    /// Number of tokens sampled independently per prompt position at the request's temperature; 0 turns it off.
    pub prompt_alt_tokens_k: u32,
}

impl Sample {
    /// Returns the maximum number of tokens that each completion may have on a model of this context length. A prompt
    /// that fills the context is scored all the same: the one token that is then sampled is ignored.
    ///
    /// # Errors
    /// A user error if the prompt leaves no room in the context.
    pub fn max_new_tokens(&self, context: usize) -> Result<usize, OpError> {
        let prompt = self.prompt.len();
        let wanted = self.params.max_tokens.map(|count| count as usize);
        // Without `max_tokens`, one token must still fit.
        let least = wanted.unwrap_or(1);
        if prompt.saturating_add(least) <= context || (prompt == context && wanted == Some(1) && self.scores_prompt()) {
            return Ok(wanted.unwrap_or(context.saturating_sub(prompt)));
        }
        Err(OpError::user(format!(
            "Prompt length plus max_tokens exceeds the model's context window: {prompt} + {least} > {context}"
        )))
    }

    /// Whether anything about the prompt's own tokens is asked for.
    fn scores_prompt(&self) -> bool {
        self.prompt_logprobs
            || self.topk_prompt_logprobs > 0
            || self.prompt_alt_tokens_k > 0
            || self.target_prompt_logprobs.is_some()
    }

    /// Returns the maximum cost in tokens: the prompt with the targets scored in it, and all tokens that may be sampled
    /// on a model of this context length.
    pub fn tokens(&self, max_context_length: usize) -> u64 {
        let prompt = self.prompt.len() as u64;
        let left = (max_context_length as u64).saturating_sub(prompt);
        let each = self.params.max_tokens.map_or(left, u64::from);
        let targets = self.target_prompt_logprobs.as_ref().map_or(0, |targets| targets.shape[1] as u64);
        scored_tokens(prompt, targets).saturating_add(each.saturating_mul(u64::from(self.num_samples)))
    }
}

/// A sample and the weights that it uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleOperation {
    /// Session of the client: within a tenant's share, sessions with work get equal parts.
    pub session: SessionId,
    /// Weights to sample from.
    pub source: SamplerSource,
    /// Request that is executed.
    pub sample: Sample,
    /// Decoded images of the prompt.
    #[serde(default, skip_serializing_if = "DecodedImages::is_empty")]
    pub images: DecodedImages,
}

/// Token ids whose log-probabilities in a prompt are asked for, `[len(prompt) - 1, K]`: dense, or the cells that two index
/// lists name. Row `p` is about the token at position `p + 1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptTargets {
    /// Number of rows and of columns.
    pub shape: [usize; 2],
    /// Token ids row by row: of every cell, where -1 skips one, or of the listed cells.
    #[serde(rename = "data")]
    pub ids: Vec<i64>,
    /// Cells that are listed; all of them if absent.
    #[serde(flatten)]
    pub sparse: Option<SparseIndices>,
}

/// Cells of a matrix in compressed rows (CSR).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SparseIndices {
    /// Row pointers: rows + 1 entries, rising from 0 to the number of cells.
    #[serde(rename = "sparse_crow_indices")]
    pub crow: Vec<i64>,
    /// Column of each cell, rising within a row.
    #[serde(rename = "sparse_col_indices")]
    pub col: Vec<i64>,
}

impl PromptTargets {
    /// Returns all ids, `[rows, columns]`, with -1 in cells that are not listed. Indices out of range are left out.
    pub fn into_dense(self) -> Tensor {
        let [rows, columns] = self.shape;
        let values = match &self.sparse {
            None => self.ids,
            Some(sparse) => {
                let mut dense = vec![-1; rows.saturating_mul(columns)];
                for (cell, &id) in sparse.cells(columns).zip(&self.ids) {
                    if let Some(at) = cell.and_then(|at| dense.get_mut(at)) {
                        *at = id;
                    }
                }
                dense
            }
        };
        Tensor { shape: vec![rows, columns], values: TensorValues::I64(values) }
    }
}

impl SparseIndices {
    /// Returns the row-major positions of the listed cells in a matrix with this number of columns; `None` for an index
    /// out of range.
    pub fn cells(&self, columns: usize) -> impl Iterator<Item = Option<usize>> + '_ {
        self.crow.windows(2).enumerate().flat_map(move |(row, bounds)| {
            let range = bounds[0].max(0) as usize..bounds[1].max(0) as usize;
            let listed = self.col.get(range).unwrap_or_default().iter();
            listed.map(move |&column| {
                let column = usize::try_from(column).ok().filter(|&column| column < columns)?;
                row.checked_mul(columns)?.checked_add(column)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn sparse() -> PromptTargets {
        let sparse = SparseIndices { crow: vec![0, 0, 2], col: vec![0, 2] };
        PromptTargets { shape: [2, 3], ids: vec![5, 6], sparse: Some(sparse) }
    }

    #[test]
    fn listed_cells_are_expanded() {
        let dense = sparse().into_dense();
        assert_eq!((dense.shape, dense.values), (vec![2, 3], TensorValues::I64(vec![-1, -1, -1, 5, -1, 6])));
        let all = PromptTargets { shape: [1, 2], ids: vec![7, -1], sparse: None };
        assert_eq!(all.into_dense().values, TensorValues::I64(vec![7, -1]));
    }

    /// The form in which earlier versions stored samples.
    #[test]
    fn the_stored_form_is_flat() {
        let stored = serde_json::json!({
            "prompt": [1, 2, 3], "num_samples": 2, "max_tokens": 4, "seed": u64::MAX >> 1, "seed_drawn": true,
            "stop": {"Strings": ["\n"]}, "temperature": 0.7, "top_k": null, "top_p": 1.0, "prompt_logprobs": true,
            "prompt_logprobs_last_n": null, "topk_prompt_logprobs": 0, "topk_sample_logprobs": 1,
            "target_prompt_logprobs": {"data": [5, 6], "dtype": "int64", "shape": [2, 3],
                "sparse_crow_indices": [0, 0, 2], "sparse_col_indices": [0, 2]},
            "prompt_alt_tokens_k": 0,
        });
        let sample: Sample = serde_json::from_value(stored).unwrap();
        assert_eq!(sample.params.stop, Stop::Strings(vec!["\n".to_owned()]));
        assert_eq!((sample.params.seed, sample.params.temperature), (u64::MAX >> 1, 0.7));
        assert_eq!(sample.params.controls, SamplingControls::default());
        assert_eq!(sample.target_prompt_logprobs, Some(sparse()));
        let text = serde_json::to_string(&sample).unwrap();
        assert_eq!(serde_json::from_str::<Sample>(&text).unwrap(), sample);
        let mut controlled = sample;
        controlled.params.controls = SamplingControls {
            min_p: 0.05,
            repetition_penalty: 1.1,
            logit_bias: vec![(5, -1.5)],
            ..Default::default()
        };
        let text = serde_json::to_string(&controlled).unwrap();
        assert_eq!(serde_json::from_str::<Sample>(&text).unwrap(), controlled);
    }

    #[test]
    fn a_prompt_may_fill_the_context_where_it_is_scored() {
        let stored = serde_json::json!({
            "prompt": [1, 2, 3, 4], "num_samples": 1, "max_tokens": 1, "seed": 0, "stop": "Default", "temperature": 1.0,
            "top_k": null, "top_p": 1.0, "prompt_logprobs": true, "prompt_logprobs_last_n": null,
            "topk_prompt_logprobs": 0, "topk_sample_logprobs": 0, "target_prompt_logprobs": null, "prompt_alt_tokens_k": 0,
        });
        let sample = |scored: bool, max_tokens: Option<u32>| {
            let mut sample: Sample = serde_json::from_value(stored.clone()).unwrap();
            (sample.prompt_logprobs, sample.params.max_tokens) = (scored, max_tokens);
            sample
        };
        assert_eq!(sample(true, Some(1)).max_new_tokens(4).unwrap(), 1);
        assert_eq!(Sample { topk_prompt_logprobs: 2, ..sample(false, Some(1)) }.max_new_tokens(4).unwrap(), 1);
        assert_eq!(
            (sample(false, None).max_new_tokens(6).unwrap(), sample(true, Some(2)).max_new_tokens(6).unwrap()),
            (2, 2)
        );
        for (sample, context, text) in [
            (sample(true, Some(1)), 3, "4 + 1 > 3"),
            (sample(true, Some(2)), 4, "4 + 2 > 4"),
            (sample(true, None), 4, "4 + 1 > 4"),
            (sample(false, Some(1)), 4, "4 + 1 > 4"),
            (sample(true, Some(u32::MAX)), 4, "4 + 4294967295 > 4"),
        ] {
            let error = sample.max_new_tokens(context).unwrap_err();
            assert!(error.message.ends_with(&format!("context window: {text}")), "{error}");
        }
    }
}

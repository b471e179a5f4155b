//! Writes results of samples in protobuf.

use bytes::Bytes;
use prost::Message;
use trainyard_protocol::{
    PromptAltTokens, SampleResult, SampledSequence, SparseIndices, StopReason, Tensor, TensorValues, TopkLogprobs,
};

use super::super::proto::{self, DType};
use super::super::tensor;

/// Weights and arithmetic that a sample was computed with, which are the same for all of its tokens.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ComputedWith {
    /// The weights: name of a base model, path of a checkpoint, or key of a snapshot in memory. For an in-flight
    /// sampler, the key stands for the weights of its save or newer ones.
    #[prost(string, tag = "1")]
    pub weights: String,
    /// Data type of the weights in GEMMs, kernels, layout, and version of the numerics.
    #[prost(string, tag = "2")]
    pub arithmetic: String,
}

/// Field behind a stored `SampleResponse`, which clients do not know.
#[derive(Clone, PartialEq, Eq, prost::Message)]
struct Extension {
    #[prost(message, optional, tag = "100")]
    computed_with: Option<ComputedWith>,
}

/// Returns the weights and numerics that a stored result was computed with, if it records them.
pub fn computed_with(result: &[u8]) -> Option<ComputedWith> {
    Extension::decode(result).ok()?.computed_with
}

/// Writes a result. `sparse` is the layout of the request's `target_prompt_logprobs`, which the result repeats.
pub fn encode_result(result: &SampleResult, sparse: Option<&SparseIndices>, computed_with: ComputedWith) -> Bytes {
    let response = proto::SampleResponse {
        sequences: result.sequences.iter().map(sequence).collect(),
        prompt_logprobs: result.prompt_logprobs.as_deref().map(tensor::f32_bytes),
        topk_prompt_logprobs: result.topk_prompt_logprobs.as_ref().map(topk),
        prompt_cache_hit_tokens: i32::try_from(result.prompt_cache_hit_tokens).unwrap_or(i32::MAX),
        target_prompt_logprobs: result.target_prompt_logprobs.as_ref().map(|scores| like_request(scores, sparse)),
        prompt_alt_tokens: result.prompt_alt_tokens.as_ref().map(alt_tokens),
    };
    let extension = Extension { computed_with: Some(computed_with) };
    // Messages that follow one another are one message.
    [response.encode_to_vec(), extension.encode_to_vec()].concat().into()
}

fn sequence(sequence: &SampledSequence) -> proto::SampledSequence {
    let stop_reason = match sequence.stop_reason {
        StopReason::Stop => proto::StopReason::Stop,
        StopReason::Length => proto::StopReason::Length,
    };
    proto::SampledSequence {
        stop_reason: stop_reason.into(),
        tokens: tensor::token_bytes(&sequence.tokens),
        logprobs: Some(tensor::f32_bytes(&sequence.logprobs)),
        topk_sampled_logprobs: sequence.topk.as_ref().map(topk),
    }
}

fn topk(rows: &TopkLogprobs) -> proto::TopkLogprobs {
    proto::TopkLogprobs {
        token_ids: tensor::token_bytes(&rows.token_ids),
        logprobs: tensor::f32_bytes(&rows.logprobs),
        k: rows.k as u32,
        length: rows.token_ids.len().checked_div(rows.k).unwrap_or(0) as u32,
    }
}

/// Returns scores in the shape and layout of the request: dense, or the cells that it listed.
fn like_request(scores: &Tensor, sparse: Option<&SparseIndices>) -> proto::Tensor {
    let values = match &scores.values {
        TensorValues::F32(values) => values.as_slice(),
        TensorValues::I64(_) => &[],
    };
    let shape: Vec<i64> = scores.shape.iter().map(|&extent| extent as i64).collect();
    let encoding = match sparse {
        None => proto::tensor::Encoding::Dense(tensor::f32_bytes(values)),
        Some(sparse) => {
            let cells = sparse.cells(scores.shape.get(1).copied().unwrap_or(0));
            let listed: Vec<f32> = cells.map(|at| at.and_then(|at| values.get(at).copied()).unwrap_or(0.0)).collect();
            proto::tensor::Encoding::SparseCsr(proto::SparseCsr {
                values: tensor::f32_bytes(&listed),
                crow_indices: tensor::i64_bytes(&sparse.crow),
                col_indices: tensor::i64_bytes(&sparse.col),
            })
        }
    };
    proto::Tensor { encoding: Some(encoding), dtype: DType::Float32.into(), shape }
}

fn alt_tokens(sampled: &PromptAltTokens) -> proto::PromptAltTokens {
    let rows = sampled.tokens.len().checked_div(sampled.k).unwrap_or(0);
    let shape = vec![rows as i64, sampled.k as i64];
    let dense = |bytes, dtype: DType| proto::Tensor {
        encoding: Some(proto::tensor::Encoding::Dense(bytes)),
        dtype: dtype.into(),
        shape: shape.clone(),
    };
    proto::PromptAltTokens {
        tokens: Some(dense(tensor::token_bytes(&sampled.tokens), DType::Int32)),
        logprobs: Some(dense(tensor::f32_bytes(&sampled.logprobs), DType::Float32)),
    }
}

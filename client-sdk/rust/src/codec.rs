//! Encodes training requests in protobuf, and decodes results of training and sampling.

use std::collections::BTreeMap;

use prost::Message;

use crate::data::{Datum, Loss, Tensor, TensorData};
use crate::error::Error;
use crate::image::{Piece, pieces};
use crate::output::{Candidates, SampleOutput, SampledSequence, StopReason, TrainingOutput};
use crate::proto;

/// Cell of a top-k row without a candidate.
const NO_CANDIDATE: (i32, f32) = (0, -99_999.0);

pub(crate) fn training_request(
    run: &str,
    seq_id: u64,
    data: &[Datum],
    loss: &Loss,
    forward_only: bool,
) -> Result<proto::ForwardBackwardRequest, Error> {
    let value = |setting: &proto::Setting| proto::LossConfigValue { value: Some(setting.clone()) };
    Ok(proto::ForwardBackwardRequest {
        model_id: run.to_owned(),
        seq_id: i32::try_from(seq_id).map_err(|_| Error::Value(format!("seq_id {seq_id} is too large")))?,
        data: data.iter().map(datum).collect(),
        loss_fn: loss.name.clone(),
        forward_only,
        loss_fn_config_v2: loss.config.iter().map(|(name, setting)| (name.clone(), value(setting))).collect(),
    })
}

fn datum(datum: &Datum) -> proto::Datum {
    let model_input = pieces(&datum.tokens, &datum.images).into_iter().map(chunk).collect();
    let inputs = datum.loss_fn_inputs.iter().map(|(name, values)| (name.clone(), tensor(values)));
    proto::Datum { model_input, loss_fn_inputs: inputs.collect() }
}

fn chunk(piece: Piece<'_>) -> proto::Chunk {
    let content = match piece {
        Piece::Tokens(tokens) => {
            let tokens = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
            proto::ChunkContent::EncodedText(proto::EncodedTextChunk { tokens })
        }
        Piece::Image(image) => proto::ChunkContent::Image(proto::ImageChunk {
            data: image.data.clone(),
            format: image.format.to_owned(),
            expected_tokens: image.expected_tokens,
        }),
    };
    proto::Chunk { content: Some(content) }
}

fn tensor(tensor: &Tensor) -> proto::Tensor {
    let (dense, dtype) = match &tensor.data {
        TensorData::Float32(values) => (values.iter().flat_map(|it| it.to_le_bytes()).collect(), proto::FLOAT32),
        TensorData::Int64(values) => (values.iter().flat_map(|it| it.to_le_bytes()).collect(), proto::INT64),
    };
    proto::Tensor { dense: Some(dense), dtype, shape: tensor.shape.clone() }
}

pub(crate) fn training_output(message: &[u8]) -> Result<TrainingOutput, Error> {
    let output = proto::ForwardBackwardOutput::decode(message).map_err(unreadable)?;
    let mut loss_fn_outputs = Vec::new();
    for record in &output.loss_fn_outputs {
        let mut fields = Vec::new();
        for (name, batched) in &record.fields {
            fields.push((name, split(batched)?));
        }
        let count = usize::try_from(record.num_datums).unwrap_or_default();
        if let Some((name, parts)) = fields.iter().find(|(_, parts)| parts.len() != count) {
            return Err(Error::Protocol(format!("{name}: {} tensors for {count} data", parts.len())));
        }
        let mut data = vec![BTreeMap::new(); if fields.is_empty() { 0 } else { count }];
        for (name, parts) in fields {
            for (datum, part) in data.iter_mut().zip(parts) {
                datum.insert(name.clone(), part);
            }
        }
        loss_fn_outputs.append(&mut data);
    }
    Ok(TrainingOutput { loss_fn_outputs, metrics: output.metrics })
}

/// Splits a batched tensor into the tensors of the datums.
fn split(batched: &proto::BatchedTensor) -> Result<Vec<Tensor>, Error> {
    let (offsets, _) = batched.offsets.as_chunks::<8>();
    let offsets: Vec<i64> = offsets.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect();
    let row: i64 = batched.trailing_shape.iter().product();
    let part = |pair: &[i64]| {
        let range = usize::try_from(pair[0]).ok().zip(usize::try_from(pair[1]).ok());
        let bytes = range.and_then(|(start, end)| batched.data.get(start..end));
        let bytes = bytes.ok_or_else(|| Error::Protocol("a tensor's offsets are outside its data".into()))?;
        let data = elements(bytes, batched.dtype)?;
        let count = match &data {
            TensorData::Float32(values) => values.len(),
            TensorData::Int64(values) => values.len(),
        };
        let rows = i64::try_from(count).unwrap_or_default().checked_div(row).unwrap_or_default();
        Ok(Tensor { data, shape: [&[rows][..], &batched.trailing_shape].concat() })
    };
    offsets.windows(2).map(part).collect()
}

fn elements(bytes: &[u8], dtype: i32) -> Result<TensorData, Error> {
    match dtype {
        proto::FLOAT32 => Ok(TensorData::Float32(floats(bytes))),
        proto::INT64 => {
            Ok(TensorData::Int64(bytes.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()))
        }
        proto::INT32 => Ok(TensorData::Int64(integers(bytes).into_iter().map(i64::from).collect())),
        other => Err(Error::Protocol(format!("unknown element type {other} of a tensor"))),
    }
}

pub(crate) fn sample_output(message: &[u8]) -> Result<SampleOutput, Error> {
    let response = proto::SampleResponse::decode(message).map_err(unreadable)?;
    let known = |bytes: Vec<u8>| floats(&bytes).into_iter().map(|it| (!it.is_nan()).then_some(it)).collect();
    Ok(SampleOutput {
        sequences: response.sequences.iter().map(sequence).collect::<Result<_, _>>()?,
        prompt_logprobs: response.prompt_logprobs.map(known),
        topk_prompt_logprobs: response.topk_prompt_logprobs.as_ref().map(candidates).transpose()?,
        prompt_cache_hit_tokens: u32::try_from(response.prompt_cache_hit_tokens).unwrap_or_default(),
    })
}

fn sequence(sequence: &proto::SampledSequence) -> Result<SampledSequence, Error> {
    let stop_reason = match sequence.stop_reason {
        proto::STOPPED_BY_LENGTH => StopReason::Length,
        _ => StopReason::Stop,
    };
    Ok(SampledSequence {
        tokens: integers(&sequence.tokens),
        stop_reason,
        logprobs: sequence.logprobs.as_deref().map(floats),
        topk_logprobs: sequence.topk_sampled_logprobs.as_ref().map(candidates).transpose()?,
    })
}

fn candidates(rows: &proto::TopkLogprobs) -> Result<Candidates, Error> {
    let (ids, logprobs) = (integers(&rows.token_ids), floats(&rows.logprobs));
    let k = rows.k as usize;
    if ids.len() != logprobs.len() || (k == 0 && !ids.is_empty()) || (k > 0 && ids.len() % k != 0) {
        let (ids, logprobs) = (ids.len(), logprobs.len());
        return Err(Error::Protocol(format!("{ids} candidates with {logprobs} log-probabilities in rows of {k}")));
    }
    let cells: Vec<_> = ids.into_iter().zip(logprobs).collect();
    let row = |row: &[(i32, f32)]| {
        let found: Vec<_> = row.iter().copied().filter(|cell| *cell != NO_CANDIDATE).collect();
        (!found.is_empty()).then_some(found)
    };
    Ok(cells.chunks(k.max(1)).map(row).collect())
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

fn integers(bytes: &[u8]) -> Vec<i32> {
    bytes.as_chunks::<4>().0.iter().map(|bytes| i32::from_le_bytes(*bytes)).collect()
}

fn unreadable(error: prost::DecodeError) -> Error {
    Error::Protocol(format!("protobuf: {error}"))
}

#[cfg(test)]
mod tests;

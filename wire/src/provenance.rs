//! Provenance: the sampled sequences that the tokens of training examples came from, and the log-probabilities that the
//! server recorded when it sampled them.
//!
//! An example names the origin of its tokens by spans. Those of `model_input` tile the input, and those of
//! `loss_fn_inputs` tile the rows of `target_tokens`. Row `t` of the recorded log-probabilities belongs to target `t`;
//! it is 0 if the target was part of a prompt.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;
use trainyard_protocol::{Datum, OpError, RawBatch, RequestId, Tensor, TensorValues};

use super::proto::provenance_span::Span;
use super::proto::{self, DType};
use super::tensor;

/// Maximum difference between a client's log-probability and the recorded one.
pub const TOLERANCE: f32 = 1e-3;

/// Returns whether the log-probabilities of a request are checked against the recorded ones. This requires a loss that
/// uses them, and an example that names its sequences.
pub fn applies(request: &proto::ForwardBackwardRequest) -> bool {
    let named = |datum: &proto::Datum| !(datum.model_input_spans.is_empty() && datum.loss_fn_input_spans.is_empty());
    request.loss_fn == "stable_reinforce" && request.data.iter().any(named)
}

/// Rows of an example that came from one sequence.
struct Segment {
    datum: usize,
    /// Field of the example whose spans contain this segment.
    field: Field,
    span: usize,
    row: usize,
    length: usize,
    sequence: usize,
    /// Index of the first sampled token; `None` for a part of the prompt.
    sampled_from: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    ModelInput,
    LossFnInputs,
}

impl Field {
    fn name(self) -> &'static str {
        match self {
            Self::ModelInput => "model_input_spans",
            Self::LossFnInputs => "loss_fn_input_spans",
        }
    }
}

impl Segment {
    fn error(&self, reason: impl std::fmt::Display) -> OpError {
        OpError::user(format!("data[{}].{}[{}]: {reason}", self.datum, self.field.name(), self.span))
    }
}

/// A request whose spans are being resolved.
pub struct Provenance {
    segments: BTreeMap<RequestId, Vec<Segment>>,
    /// Log-probabilities found so far, for every example with spans; `None` in rows that were not sampled.
    recorded: BTreeMap<usize, Vec<Option<f32>>>,
}

impl Provenance {
    /// Reads the spans of a request. `batch` is the same request, decoded.
    ///
    /// # Errors
    ///
    /// A user error that names the span, if the spans do not tile their field or an id is not that of a sampled
    /// sequence.
    pub fn read(request: &proto::ForwardBackwardRequest, batch: &RawBatch) -> Result<Self, OpError> {
        let mut found = Self { segments: BTreeMap::new(), recorded: BTreeMap::new() };
        for (index, (message, datum)) in request.data.iter().zip(&batch.data).enumerate() {
            let (inputs, targets) = (&message.model_input_spans, &message.loss_fn_input_spans);
            if inputs.is_empty() && targets.is_empty() {
                continue;
            }
            // One that has no targets of this shape is refused for that later.
            let rows = datum.loss_fn_inputs.get("target_tokens").map_or(datum.tokens.len(), Tensor::len);
            found.add(index, Field::ModelInput, inputs, datum.tokens.len())?;
            found.add(index, Field::LossFnInputs, targets, rows)?;
            found.recorded.insert(index, vec![None; rows]);
        }
        Ok(found)
    }

    fn add(
        &mut self,
        datum: usize,
        field: Field,
        spans: &[proto::ProvenanceSpan],
        expected: usize,
    ) -> Result<(), OpError> {
        let mut row = 0_usize;
        for (index, span) in spans.iter().enumerate() {
            let at = |reason: String| OpError::user(format!("data[{datum}].{}[{index}]: {reason}", field.name()));
            let (tokens, sampled) = match &span.span {
                Some(Span::PromptTokens(tokens)) => (tokens, false),
                Some(Span::SampledTokens(tokens)) => (tokens, true),
                None => return Err(at("has neither prompt_tokens nor sampled_tokens".to_owned())),
            };
            let proto::TokenSpan { sequence_id, offset, length } = tokens;
            let counts = usize::try_from(*offset).ok().zip(usize::try_from(*length).ok());
            let Some((offset, length)) = counts else {
                return Err(at(format!("offset {offset} and length {length} must be at least 0")));
            };
            if length == 0 {
                continue;
            }
            let (request, sequence) = sequence_of(sequence_id)
                .ok_or_else(|| at(format!("{sequence_id:?} is not the id of a sampled sequence")))?;
            let sampled_from = sampled.then_some(offset);
            let segment = Segment { datum, field, span: index, row, length, sequence, sampled_from };
            self.segments.entry(request).or_default().push(segment);
            row = row.saturating_add(length);
        }
        if row != expected {
            let text =
                format!("data[{datum}].{}: spans cover {row} positions, but the field has {expected}", field.name());
            return Err(OpError::user(text));
        }
        Ok(())
    }

    /// Returns the samples whose sequences are named, in a fixed order.
    pub fn requests(&self) -> Vec<RequestId> {
        self.segments.keys().cloned().collect()
    }

    /// Resolves the spans of a named sample with its recorded result; `None` means that no result was recorded.
    ///
    /// # Errors
    ///
    /// A user error that names the span, if its sequence was not recorded, is too short or has other tokens; a server
    /// error if the record is unreadable.
    pub fn resolve(&mut self, request: &RequestId, record: Option<&Bytes>, batch: &RawBatch) -> Result<(), OpError> {
        let segments = self.segments.remove(request).unwrap_or_default();
        let Some(first) = segments.first() else { return Ok(()) };
        let Some(record) = record else {
            return Err(first.error(format_args!(
                "the server has no record of the sequence {request}:{}; sample with record_stability_info, and train \
                 within the time for which records are kept",
                first.sequence
            )));
        };
        let sampled = RecordedSequences::decode(record)?;
        for segment in &segments {
            let (tokens, logprobs) = sampled.0.get(segment.sequence).ok_or_else(|| {
                segment.error(format_args!("the sample {request} has only {} sequences", sampled.0.len()))
            })?;
            let Some(from) = segment.sampled_from else { continue };
            let range = from..from.saturating_add(segment.length);
            let (Some(tokens), Some(logprobs)) = (tokens.get(range.clone()), logprobs.get(range.clone())) else {
                return Err(segment.error(format_args!(
                    "positions {} to {} are beyond the end of the sequence, which has {} tokens",
                    range.start,
                    range.end,
                    tokens.len()
                )));
            };
            let Some(datum) = batch.data.get(segment.datum) else { continue };
            check_tokens(segment, tokens, datum)?;
            if segment.field == Field::LossFnInputs
                && let Some(rows) = self.recorded.get_mut(&segment.datum)
            {
                for (row, logprob) in rows.iter_mut().skip(segment.row).zip(logprobs) {
                    *row = Some(*logprob);
                }
            }
        }
        Ok(())
    }

    /// Replaces the examples' `logprobs` by the recorded ones, both in the message and in the decoded batch, and
    /// removes the spans from the message. The message then contains everything that executing it needs.
    ///
    /// # Errors
    ///
    /// A user error that names the row, if a log-probability is not the recorded one or a token that was not sampled
    /// has an advantage.
    pub fn apply(self, request: &mut proto::ForwardBackwardRequest, batch: &mut RawBatch) -> Result<(), OpError> {
        for (index, recorded) in self.recorded {
            let (Some(message), Some(datum)) = (request.data.get_mut(index), batch.data.get_mut(index)) else {
                continue;
            };
            (message.model_input_spans, message.loss_fn_input_spans) = (Vec::new(), Vec::new());
            // What has another type or shape is refused later, as without spans.
            let Some(given) = rows(datum, "logprobs", recorded.len()) else { continue };
            check_logprobs(index, given, &recorded)?;
            if let Some(advantages) = rows(datum, "advantages", recorded.len()) {
                check_advantages(index, advantages, &recorded)?;
            }
            let values: Vec<f32> = recorded.iter().map(|row| row.unwrap_or(0.0)).collect();
            let dense = proto::Tensor {
                encoding: Some(proto::tensor::Encoding::Dense(tensor::f32_bytes(&values))),
                dtype: DType::Float32.into(),
                shape: vec![values.len() as i64],
            };
            message.loss_fn_inputs.insert("logprobs".to_owned(), dense);
            datum.loss_fn_inputs.insert("logprobs".to_owned(), Tensor::f32(values));
        }
        Ok(())
    }
}

/// Returns the request of a sample and the index of the sequence in it. Ids of sequences have the form
/// `<request>:<index>`.
fn sequence_of(id: &str) -> Option<(RequestId, usize)> {
    let (request, place) = id.rsplit_once(':')?;
    Some((RequestId::new(request), place.parse().ok()?))
}

/// Tokens and log-probabilities of all sequences of a sample.
struct RecordedSequences(Vec<(Vec<i64>, Vec<f32>)>);

impl RecordedSequences {
    fn decode(result: &Bytes) -> Result<Self, OpError> {
        let unreadable = |error: String| {
            tracing::error!(error, "the record of a sample is unreadable");
            OpError::server("the record of a sampled sequence is unreadable; the server's log has the details")
        };
        let response = proto::SampleResponse::decode(result.clone()).map_err(|error| unreadable(error.to_string()))?;
        let sequences = response.sequences.iter().map(|sequence| {
            let tokens = tensor::tokens(&sequence.tokens).map_err(|error| unreadable(error.to_string()))?.collect();
            let logprobs = sequence.logprobs.as_deref().unwrap_or_default().as_chunks::<4>().0;
            Ok((tokens, logprobs.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()))
        });
        sequences.collect::<Result<_, OpError>>().map(Self)
    }
}

fn check_tokens(segment: &Segment, sampled: &[i64], datum: &Datum) -> Result<(), OpError> {
    let (name, tokens) = match segment.field {
        Field::ModelInput => ("model_input", Some(&datum.tokens)),
        Field::LossFnInputs => match datum.loss_fn_inputs.get("target_tokens").map(|targets| &targets.values) {
            Some(TensorValues::I64(ids)) => ("target_tokens", Some(ids)),
            _ => ("target_tokens", None),
        },
    };
    let Some(tokens) = tokens.and_then(|tokens| tokens.get(segment.row..)) else { return Ok(()) };
    let differing = tokens.iter().zip(sampled).position(|(found, sampled)| found != sampled);
    differing.map_or(Ok(()), |at| {
        Err(segment.error(format_args!(
            "{name} has token {} in position {}, but the sequence has {}",
            tokens[at],
            segment.row + at,
            sampled[at]
        )))
    })
}

/// Returns the values of a float input if it has `count` rows.
fn rows<'a>(datum: &'a Datum, name: &str, count: usize) -> Option<&'a [f32]> {
    match &datum.loss_fn_inputs.get(name)?.values {
        TensorValues::F32(values) if values.len() == count => Some(values),
        _ => None,
    }
}

fn check_logprobs(index: usize, given: &[f32], recorded: &[Option<f32>]) -> Result<(), OpError> {
    for (row, (given, recorded)) in given.iter().zip(recorded).enumerate() {
        let Some(recorded) = recorded else { continue };
        // NaN is not.
        let is_near = (given - recorded).abs() <= TOLERANCE;
        if !is_near {
            return Err(OpError::user(format!(
                "data[{index}].loss_fn_inputs.logprobs: element {row} is {given}, and the server recorded {recorded} when \
                 it sampled the token; they may differ by {TOLERANCE}"
            )));
        }
    }
    Ok(())
}

fn check_advantages(index: usize, advantages: &[f32], recorded: &[Option<f32>]) -> Result<(), OpError> {
    let wrong = advantages.iter().zip(recorded).position(|(advantage, row)| row.is_none() && *advantage != 0.0);
    wrong.map_or(Ok(()), |row| {
        Err(OpError::user(format!(
            "data[{index}].loss_fn_inputs.advantages: element {row} is {}, and its target was not sampled: \
             stable_reinforce takes advantages only for sampled tokens",
            advantages[row]
        )))
    })
}

#[cfg(test)]
#[path = "provenance_tests.rs"]
mod tests;

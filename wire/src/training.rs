//! Training passes, `forward_backward` and `forward`. Requests are protobuf or JSON; results are protobuf.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;
use serde::{Deserialize, Deserializer, Serialize};
use trainyard_protocol::limits::{MAX_DATUMS, MAX_LOSS_SETTINGS, MAX_PARTS, MAX_TARGETS, check_datums, check_targets};
use trainyard_protocol::{
    Datum, DatumOutput, DecodedImages, ForwardBackwardResult, LossConfig, LossConfigValue, OpError, RawBatch, RunId,
};
use utoipa::ToSchema;

use super::custom_loss;
use super::images::{ImageRules, InputTokens, RequestImages};
use super::model_input::{ModelInput, NO_AUDIO};
use super::parts;
use super::proto::{self, DType};
use super::tensor::{self, ExpansionBudget, TensorData};
use super::{json, lists};

/// Reads a protobuf body. Only its framing and the number of its parts are checked; [`batch`] checks the content.
pub fn decode(body: Bytes) -> Result<proto::ForwardBackwardRequest, OpError> {
    parts::check(&body)?;
    proto::ForwardBackwardRequest::decode(body)
        .map_err(|error| OpError::user(format!("the body is not a valid ForwardBackwardRequest: {error}")))
}

/// Writes a request in its stored form.
pub fn encode(request: &proto::ForwardBackwardRequest) -> Bytes {
    request.encode_to_vec().into()
}

/// Returns the run and the `seq_id` of a protobuf body whose other fields may be malformed or truncated.
pub fn proto_ids(body: &[u8]) -> Option<(RunId, i64)> {
    let mut ids = proto::TrainingIds::default();
    // Clients write the ids first, and what was read before an error stays. `decode` reports the error.
    let _ = ids.merge(body);
    let readable = !ids.model_id.is_empty() && ids.seq_id != 0;
    readable.then(|| (RunId::new(ids.model_id), i64::from(ids.seq_id)))
}

/// Returns whether examples of a request have images, so that its tokens depend on the model.
pub fn has_images(request: &proto::ForwardBackwardRequest) -> bool {
    let is_image = |chunk: &proto::Chunk| matches!(chunk.chunk, Some(proto::chunk::Content::Image(_)));
    request.data.iter().any(|datum| datum.model_input.iter().any(is_image))
}

/// Returns the examples of a request for a model with these rules, with sparse inputs expanded and images counted but not
/// decoded.
///
/// # Errors
///
/// A user error that names the field at fault.
pub fn batch(request: proto::ForwardBackwardRequest, rules: &ImageRules) -> Result<RawBatch, OpError> {
    check_datums(request.data.len())?;
    let loss_fn_config = loss_config(request.loss_fn_config, request.loss_fn_config_v2)?;
    let mut budget = ExpansionBudget::default();
    let mut images = RequestImages::new(rules);
    let mut data = Vec::with_capacity(request.data.len());
    for (index, datum) in request.data.into_iter().enumerate() {
        data.push(decode_datum(index, datum, &mut budget, &mut images)?);
    }
    let decoded = DecodedImages::new();
    let batch = RawBatch { data, loss_fn: request.loss_fn, loss_fn_config, custom_loss: None, decoded };
    check_placeholders(&batch, rules)?;
    Ok(batch)
}

/// Refuses tokens of the examples' texts that stand for images in the model.
///
/// # Errors
///
/// A user error that names example and token.
pub fn check_placeholders(batch: &RawBatch, rules: &ImageRules) -> Result<(), OpError> {
    for (index, datum) in batch.data.iter().enumerate() {
        rules
            .check_tokens(&datum.tokens, &datum.images)
            .map_err(|text| OpError::user(format!("data[{index}].model_input: {text}")))?;
    }
    Ok(())
}

/// Returns the examples of a stored request, with its custom loss.
///
/// # Errors
///
/// A user error that names the field at fault.
pub fn stored_batch(payload: Bytes, rules: &ImageRules) -> Result<RawBatch, OpError> {
    let mut batch = batch(decode(payload.clone())?, rules)?;
    if batch.loss_fn == CUSTOM {
        batch.custom_loss = custom_loss::stored_loss(&payload);
    }
    Ok(batch)
}

/// Loss function whose graph the client uploaded.
const CUSTOM: &str = "custom";

/// Returns the id of the custom loss that a batch names; `None` for other losses.
///
/// # Errors
///
/// A user error if the setting is missing, or if there is another one.
pub fn custom_loss_id(batch: &RawBatch) -> Result<Option<&str>, OpError> {
    if batch.loss_fn != CUSTOM {
        return Ok(None);
    }
    match batch.loss_fn_config.get("loss_id") {
        Some(LossConfigValue::Text(id)) if batch.loss_fn_config.len() == 1 => Ok(Some(id)),
        _ => Err(OpError::user(
            "loss_fn_config.loss_id: the loss \"custom\" requires the id that create_custom_loss returned, and no other setting",
        )),
    }
}

fn loss_config(
    legacy: BTreeMap<String, f64>,
    config: BTreeMap<String, proto::LossConfigValue>,
) -> Result<LossConfig, OpError> {
    if config.is_empty() {
        return Ok(legacy.into_iter().map(|(key, number)| (key, LossConfigValue::Number(number))).collect());
    }
    let mut read = LossConfig::new();
    for (key, value) in config {
        let value = match value.value {
            Some(proto::loss_config_value::Value::Number(number)) => LossConfigValue::Number(number),
            Some(proto::loss_config_value::Value::Text(text)) => LossConfigValue::Text(text),
            None => return Err(OpError::user(format!("loss_fn_config.{key}: has no value"))),
        };
        read.insert(key, value);
    }
    Ok(read)
}

fn decode_datum(
    index: usize,
    datum: proto::Datum,
    budget: &mut ExpansionBudget,
    request_images: &mut RequestImages<'_>,
) -> Result<Datum, OpError> {
    let mut input = InputTokens::default();
    for (chunk_index, chunk) in datum.model_input.iter().enumerate() {
        push_chunk(chunk, &mut input, request_images).map_err(|error| OpError {
            message: format!("data[{index}].model_input.chunks[{chunk_index}]: {}", error.message),
            ..error
        })?;
    }
    let InputTokens { tokens, images } = input;
    if tokens.is_empty() {
        return Err(OpError::user(format!("data[{index}].model_input: at least one token is required")));
    }
    let mut loss_fn_inputs = BTreeMap::new();
    for (name, tensor) in datum.loss_fn_inputs {
        // Before a sparse one expands. The engine, which knows the vocabulary, may allow fewer.
        let columns = tensor.shape.get(1).map_or(1, |columns| u64::try_from(*columns).unwrap_or(0));
        check_targets(columns, MAX_TARGETS)
            .map_err(|text| OpError::user(format!("data[{index}].loss_fn_inputs.{name}: {text}")))?;
        let dense = tensor::densify(&tensor, 0, budget)
            .map_err(|error| OpError::user(format!("data[{index}].loss_fn_inputs.{name}: {error}")))?;
        loss_fn_inputs.insert(name, dense);
    }
    Ok(Datum { tokens, loss_fn_inputs, images })
}

fn push_chunk(chunk: &proto::Chunk, input: &mut InputTokens, images: &mut RequestImages<'_>) -> Result<(), OpError> {
    match &chunk.chunk {
        Some(proto::chunk::Content::EncodedText(text)) => {
            input.tokens.extend(tensor::tokens(&text.tokens).map_err(|error| OpError::user(error.to_string()))?);
            Ok(())
        }
        Some(proto::chunk::Content::Image(image)) => images.append(input, image.sent()),
        Some(proto::chunk::Content::Dmel(_)) => Err(OpError::user(NO_AUDIO)),
        None => Err(OpError::user("has no content")),
    }
}

/// JSON body of `forward_backward`, as older clients send it.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct ForwardBackwardBody {
    /// Id of the run.
    pub model_id: String,
    /// Position in the run's order, from 1.
    #[schema(minimum = 1)]
    pub seq_id: i64,
    /// Examples and loss to compute.
    #[serde(deserialize_with = "json::object")]
    pub forward_backward_input: ForwardBackwardInput,
}

/// JSON body of `forward`, as older clients send it.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct ForwardBody {
    /// Id of the run.
    pub model_id: String,
    /// Position in the run's order, from 1.
    #[schema(minimum = 1)]
    pub seq_id: i64,
    /// Examples and loss to compute.
    #[serde(deserialize_with = "json::object")]
    pub forward_input: ForwardBackwardInput,
}

/// Training examples and their loss.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct ForwardBackwardInput {
    /// Training examples of the batch.
    #[serde(deserialize_with = "datums")]
    pub data: Vec<DatumBody>,
    /// Name of the loss function.
    pub loss_fn: String,
    /// Settings of the loss function: numbers and texts.
    #[serde(default, deserialize_with = "loss_fn_config")]
    pub loss_fn_config: BTreeMap<String, ConfigValue>,
}

fn loss_fn_config<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, ConfigValue>, D::Error> {
    json::bounded_map(deserializer, MAX_LOSS_SETTINGS, "settings")
}

fn datums<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<DatumBody>, D::Error> {
    let bounds = json::Bounds {
        most: MAX_DATUMS,
        noun: "datums",
        most_parts: MAX_PARTS,
        parts: |datum: &DatumBody| datum.model_input.chunks.len() + datum.loss_fn_inputs.len(),
        parts_noun: "chunks and loss inputs",
    };
    bounds.read(deserializer)
}

/// A training example in JSON.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DatumBody {
    /// Input of the model.
    #[serde(deserialize_with = "json::object")]
    pub model_input: ModelInput,
    /// Inputs of the loss function, by name.
    #[serde(default, deserialize_with = "lists::loss_fn_inputs")]
    pub loss_fn_inputs: BTreeMap<String, TensorData>,
}

/// Value of a setting of a loss function, in JSON.
#[derive(Clone, Debug, PartialEq, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a number or a text")]
pub enum ConfigValue {
    /// A number, for numeric settings.
    Number(f64),
    /// A text, for other settings.
    Text(String),
}

impl ForwardBackwardBody {
    /// Converts the request to protobuf, the form in which it is stored.
    pub fn into_proto(self) -> Result<proto::ForwardBackwardRequest, OpError> {
        self.forward_backward_input.into_proto("forward_backward_input", self.model_id, self.seq_id, false)
    }
}

impl ForwardBody {
    /// Converts the request to protobuf, the form in which it is stored.
    pub fn into_proto(self) -> Result<proto::ForwardBackwardRequest, OpError> {
        self.forward_input.into_proto("forward_input", self.model_id, self.seq_id, true)
    }
}

impl ForwardBackwardInput {
    fn into_proto(
        self,
        field: &str,
        model_id: String,
        seq_id: i64,
        forward_only: bool,
    ) -> Result<proto::ForwardBackwardRequest, OpError> {
        let seq_id = i32::try_from(seq_id).map_err(|_| OpError::user(format!("seq_id: {seq_id} is out of range")))?;
        let mut data = Vec::with_capacity(self.data.len());
        for (index, datum) in self.data.into_iter().enumerate() {
            let at = |error: OpError| OpError::user(format!("{field}.data[{index}].{}", error.message));
            data.push(datum.into_proto().map_err(at)?);
        }
        let config = self.loss_fn_config.into_iter().map(|(key, value)| (key, value.into_proto())).collect();
        Ok(proto::ForwardBackwardRequest {
            model_id,
            seq_id,
            data,
            loss_fn: self.loss_fn,
            loss_fn_config: BTreeMap::new(),
            forward_only,
            loss_fn_config_v2: config,
        })
    }
}

impl ConfigValue {
    fn into_proto(self) -> proto::LossConfigValue {
        let value = match self {
            Self::Number(number) => proto::loss_config_value::Value::Number(number),
            Self::Text(text) => proto::loss_config_value::Value::Text(text),
        };
        proto::LossConfigValue { value: Some(value) }
    }
}

impl DatumBody {
    fn into_proto(self) -> Result<proto::Datum, OpError> {
        let model_input = self.model_input.into_chunks("model_input")?;
        let mut loss_fn_inputs = BTreeMap::new();
        for (name, data) in self.loss_fn_inputs {
            let tensor = data.to_proto().map_err(|error| OpError::user(format!("loss_fn_inputs.{name}: {error}")))?;
            loss_fn_inputs.insert(name, tensor);
        }
        Ok(proto::Datum { model_input, loss_fn_inputs, ..proto::Datum::default() })
    }
}

/// Values of a datum's positions, if it asked for them.
type OfPositions = fn(&DatumOutput) -> Option<&[f32]>;

const OF_POSITIONS: [(&str, OfPositions); 2] =
    [("entropies", |datum| datum.entropies.as_deref()), ("kl", |datum| datum.kl.as_deref())];

/// Writes a result. Consecutive datums with the same trailing shape share a record, because K may differ from datum to
/// datum. Clients expect the same fields in all records.
pub fn encode_output(result: &ForwardBackwardResult) -> Bytes {
    let is_asked = |of: OfPositions| result.outputs.iter().any(|datum| of(datum).is_some());
    let asked: Vec<_> = OF_POSITIONS.into_iter().filter(|(_, of)| is_asked(*of)).collect();
    let records = result.outputs.chunk_by(|a, b| trailing_shape(a) == trailing_shape(b)).map(|group| {
        let trailing = group.first().map(trailing_shape).unwrap_or_default();
        let of_targets = |values: fn(&DatumOutput) -> &[f32]| batched_tensor(group, trailing, values);
        let mut fields = BTreeMap::from([("logprobs".to_owned(), of_targets(|datum| &datum.logprobs))]);
        // A custom loss has no terms.
        if group.iter().any(|datum| !datum.elementwise_loss.is_empty()) {
            fields.insert("elementwise_loss".to_owned(), of_targets(|datum| &datum.elementwise_loss));
        }
        for (name, values) in &asked {
            fields.insert((*name).to_owned(), batched_tensor(group, &[], |datum| values(datum).unwrap_or_default()));
        }
        proto::ArrayRecord { type_tag: OUTPUT_TYPE.to_owned(), fields, num_datums: group.len() as i64 }
    });
    let output = proto::ForwardBackwardOutput {
        loss_fn_output_type: OUTPUT_TYPE.to_owned(),
        loss_fn_outputs: records.collect(),
        metrics: result.metrics.clone(),
    };
    output.encode_to_vec().into()
}

/// Type of the outputs, which clients show.
const OUTPUT_TYPE: &str = "ArrayRecord";

/// Returns whether [`encode_output`] wrote a stored result: it writes the output type in the first field. Read as the
/// first sequence of a sample, that text would not be a valid message.
pub fn is_output(result: &[u8]) -> bool {
    /// Key and length of field 1, the output type.
    const KEY: [u8; 2] = [0x0a, OUTPUT_TYPE.len() as u8];
    result.strip_prefix(&KEY).is_some_and(|rest| rest.starts_with(OUTPUT_TYPE.as_bytes()))
}

/// Extents of the targets behind the positions.
fn trailing_shape(datum: &DatumOutput) -> &[usize] {
    datum.shape.get(1..).unwrap_or_default()
}

/// Values of each datum, whose extents behind the first one are `trailing`.
fn batched_tensor(
    group: &[DatumOutput],
    trailing: &[usize],
    values: impl Fn(&DatumOutput) -> &[f32],
) -> proto::BatchedTensor {
    let mut data: Vec<u8> = Vec::new();
    let mut offsets = vec![0_i64];
    for datum in group {
        data.extend(values(datum).iter().flat_map(|value| value.to_le_bytes()));
        offsets.push(data.len() as i64);
    }
    proto::BatchedTensor {
        data: data.into(),
        offsets: tensor::i64_bytes(&offsets),
        dtype: DType::Float32.into(),
        trailing_shape: trailing.iter().map(|&extent| extent as i64).collect(),
    }
}

#[cfg(test)]
#[path = "training_tests.rs"]
mod tests;

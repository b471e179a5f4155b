//! `forward_backward` and `forward`: protobuf and JSON requests in, protobuf results out.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;
use serde::{Deserialize, Deserializer};
use trainyard_protocol::limits::{MAX_DATUMS, MAX_LOSS_SETTINGS, MAX_PARTS, MAX_TARGETS, check_targets};
use trainyard_protocol::{
    Datum, DatumOutput, ForwardBackwardResult, LossConfig, LossConfigValue, OpError, RawBatch, RunId,
};
use utoipa::ToSchema;

use super::custom_loss;
use super::model_input::ModelInput;
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

/// Writes a request as it is stored.
pub fn encode(request: &proto::ForwardBackwardRequest) -> Bytes {
    request.encode_to_vec().into()
}

/// The run and `seq_id` of a protobuf body whose other fields may be malformed or cut off.
pub fn proto_ids(body: &[u8]) -> Option<(RunId, i64)> {
    let mut ids = proto::TrainingIds::default();
    // Clients write the ids first, and what was read before an error stays. `decode` reports the error.
    let _ = ids.merge(body);
    let readable = !ids.model_id.is_empty() && ids.seq_id != 0;
    readable.then(|| (RunId::new(ids.model_id), i64::from(ids.seq_id)))
}

/// The examples of a request, with sparse inputs expanded.
///
/// # Errors
/// The user's, by field.
pub fn batch(request: proto::ForwardBackwardRequest) -> Result<RawBatch, OpError> {
    if request.data.is_empty() {
        return Err(OpError::user("data: at least one datum is required"));
    }
    if request.data.len() > MAX_DATUMS {
        let found = request.data.len();
        return Err(OpError::user(format!("data: {found} datums, at most {MAX_DATUMS} are allowed")));
    }
    let loss_fn_config = loss_config(request.loss_fn_config, request.loss_fn_config_v2)?;
    let mut budget = ExpansionBudget::default();
    let mut data = Vec::with_capacity(request.data.len());
    for (index, datum) in request.data.into_iter().enumerate() {
        data.push(decode_datum(index, datum, &mut budget)?);
    }
    Ok(RawBatch { data, loss_fn: request.loss_fn, loss_fn_config, custom_loss: None })
}

/// The examples of a stored request, with its custom loss.
///
/// # Errors
/// The user's, by field.
pub fn stored_batch(payload: Bytes) -> Result<RawBatch, OpError> {
    let mut batch = batch(decode(payload.clone())?)?;
    if batch.loss_fn == CUSTOM {
        batch.custom_loss = custom_loss::stored_loss(&payload);
    }
    Ok(batch)
}

/// The loss function whose graph the client uploaded.
const CUSTOM: &str = "custom";

/// The id of the custom loss that a batch names; `None` for other losses.
///
/// # Errors
/// The user's when there is no such setting, or another.
pub fn custom_loss_id(batch: &RawBatch) -> Result<Option<&str>, OpError> {
    if batch.loss_fn != CUSTOM {
        return Ok(None);
    }
    match batch.loss_fn_config.get("loss_id") {
        Some(LossConfigValue::Text(id)) if batch.loss_fn_config.len() == 1 => Ok(Some(id)),
        _ => Err(OpError::user(
            "loss_fn_config.loss_id: custom needs the id that create_custom_loss returned, and nothing else",
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

fn decode_datum(index: usize, datum: proto::Datum, budget: &mut ExpansionBudget) -> Result<Datum, OpError> {
    let mut tokens = Vec::new();
    for (chunk_index, chunk) in datum.model_input.iter().enumerate() {
        push_chunk(chunk, &mut tokens)
            .map_err(|error| OpError::user(format!("data[{index}].model_input.chunks[{chunk_index}]: {error}")))?;
    }
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
    Ok(Datum { tokens, loss_fn_inputs })
}

fn push_chunk(chunk: &proto::Chunk, tokens: &mut Vec<i64>) -> Result<(), String> {
    match &chunk.chunk {
        Some(proto::chunk::Content::EncodedText(text)) => {
            tokens.extend(tensor::tokens(&text.tokens).map_err(|error| error.to_string())?);
            Ok(())
        }
        Some(proto::chunk::Content::Image(_)) => Err("image chunks are not supported by this model".to_owned()),
        Some(proto::chunk::Content::Dmel(_)) => Err("dmel chunks are not supported by this model".to_owned()),
        None => Err("has no content".to_owned()),
    }
}

/// JSON body of `forward_backward`, as older clients send it.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct ForwardBackwardBody {
    /// The run.
    pub model_id: String,
    /// Its position in the run's order, from 1.
    #[schema(minimum = 1)]
    pub seq_id: i64,
    /// What to compute.
    #[serde(deserialize_with = "json::object")]
    pub forward_backward_input: ForwardBackwardInput,
}

/// JSON body of `forward`, as older clients send it.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct ForwardBody {
    /// The run.
    pub model_id: String,
    /// Its position in the run's order, from 1.
    #[schema(minimum = 1)]
    pub seq_id: i64,
    /// What to compute.
    #[serde(deserialize_with = "json::object")]
    pub forward_input: ForwardBackwardInput,
}

/// Examples and their loss.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct ForwardBackwardInput {
    /// Training examples.
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
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct DatumBody {
    /// The input.
    #[serde(deserialize_with = "json::object")]
    pub model_input: ModelInput,
    /// Inputs of the loss function by name.
    #[serde(default, deserialize_with = "lists::loss_fn_inputs")]
    pub loss_fn_inputs: BTreeMap<String, TensorData>,
}

/// A setting of a loss function in JSON.
#[derive(Clone, Debug, PartialEq, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a number or a text")]
pub enum ConfigValue {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

impl ForwardBackwardBody {
    /// The same request as protobuf, which is what is stored.
    pub fn into_proto(self) -> Result<proto::ForwardBackwardRequest, OpError> {
        self.forward_backward_input.into_proto("forward_backward_input", self.model_id, self.seq_id, false)
    }
}

impl ForwardBody {
    /// The same request as protobuf, which is what is stored.
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
        let mut bytes = Vec::new();
        for (at, token) in self.model_input.tokens("model_input")?.into_iter().enumerate() {
            let token = i32::try_from(token).map_err(|_| {
                OpError::user(format!("model_input: token {at} is {token}, outside the range of int32"))
            })?;
            bytes.extend_from_slice(&token.to_le_bytes());
        }
        let text = proto::EncodedTextChunk { tokens: bytes.into() };
        let mut loss_fn_inputs = BTreeMap::new();
        for (name, data) in self.loss_fn_inputs {
            let tensor = data.to_proto().map_err(|error| OpError::user(format!("loss_fn_inputs.{name}: {error}")))?;
            loss_fn_inputs.insert(name, tensor);
        }
        Ok(proto::Datum {
            model_input: vec![proto::Chunk { chunk: Some(proto::chunk::Content::EncodedText(text)) }],
            loss_fn_inputs,
            ..proto::Datum::default()
        })
    }
}

/// Writes a result. Consecutive datums with the same trailing shape share a record, so that K may differ
/// from datum to datum.
pub fn encode_output(result: &ForwardBackwardResult) -> Bytes {
    let trailing = |datum: &DatumOutput| datum.shape.get(1..).unwrap_or_default().to_vec();
    let records = result.outputs.chunk_by(|a, b| trailing(a) == trailing(b)).map(|group| {
        let mut fields = BTreeMap::from([("logprobs".to_owned(), batched_tensor(group, |datum| &datum.logprobs))]);
        // A custom loss has no terms.
        if group.iter().any(|datum| !datum.elementwise_loss.is_empty()) {
            fields.insert("elementwise_loss".to_owned(), batched_tensor(group, |datum| &datum.elementwise_loss));
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

/// What the client shows as the type of the outputs.
const OUTPUT_TYPE: &str = "ArrayRecord";

/// Whether a stored result is one of [`encode_output`], which names its type in its first field. Read as the first
/// sequence of a sample that name would not be a valid message.
pub fn is_output(result: &[u8]) -> bool {
    /// Field 1, a text of that length.
    const KEY: [u8; 2] = [0x0a, OUTPUT_TYPE.len() as u8];
    result.strip_prefix(&KEY).is_some_and(|rest| rest.starts_with(OUTPUT_TYPE.as_bytes()))
}

fn batched_tensor(group: &[DatumOutput], values: impl Fn(&DatumOutput) -> &Vec<f32>) -> proto::BatchedTensor {
    let mut data: Vec<u8> = Vec::new();
    let mut offsets = vec![0_i64];
    for datum in group {
        data.extend(values(datum).iter().flat_map(|value| value.to_le_bytes()));
        offsets.push(data.len() as i64);
    }
    let trailing = group.first().and_then(|datum| datum.shape.get(1..)).unwrap_or_default();
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

//! Custom losses: `create_custom_loss`, and custom losses within stored training requests.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use prost::Message;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use trainyard_protocol::OpError;
use trainyard_protocol::custom_loss::{CustomLoss, MAX_GRAPH_BYTES};
use utoipa::ToSchema;

/// Request body of `create_custom_loss`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CreateCustomLossRequest {
    /// Id of the client's session.
    pub session_id: String,
    /// Number of the custom loss within the session.
    #[schema(minimum = 0)]
    pub custom_loss_seq_id: i64,
    /// Name of the function, for error messages.
    pub name: String,
    /// Inputs that the loss reads from each datum, in order, each as `{"name", "rank"}`. The first is `logprobs`.
    #[schema(value_type = Vec<Object>)]
    pub inputs: Value,
    /// The function as `torch.fx` traced it: `{"format": 1, "nodes": […]}`.
    #[schema(value_type = Object)]
    pub graph: Value,
}

/// Result of `create_custom_loss`, which `retrieve_future` returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreateCustomLossResponse {
    /// Id of the custom loss, `<session>:loss:<n>`; the setting `loss_id` of the loss function `custom`.
    pub loss_id: String,
    /// Always the text `create_custom_loss`.
    #[serde(rename = "type")]
    pub kind: String,
}

impl CreateCustomLossResponse {
    /// Returns the result for a custom loss that exists.
    pub fn new(loss_id: impl Into<String>) -> Self {
        Self { loss_id: loss_id.into(), kind: "create_custom_loss".to_owned() }
    }
}

impl CreateCustomLossRequest {
    /// Checks the graph and returns the definition in its stored form.
    ///
    /// # Errors
    ///
    /// A user error that names the field or the node at fault.
    pub fn definition(&self) -> Result<Bytes, OpError> {
        let definition = json!({"name": self.name, "inputs": self.inputs, "graph": self.graph});
        let bytes = definition.to_string();
        if bytes.len() > MAX_GRAPH_BYTES {
            let found = bytes.len();
            return Err(OpError::user(format!("graph: {found} bytes as JSON, at most {MAX_GRAPH_BYTES} are allowed")));
        }
        CustomLoss::read(&definition).map_err(|error| error.refusal())?;
        Ok(bytes.into())
    }
}

/// The custom loss of a stored training request, in a field behind those of the client's message.
#[derive(Clone, PartialEq, Message)]
struct StoredLoss {
    #[prost(bytes = "bytes", optional, tag = "100000")]
    definition: Option<Bytes>,
}

/// Appends the definition of the custom loss to a training request, so that any worker can replay it. A value that a
/// client sent under this field number has no effect, since the last value counts.
pub fn with_definition(payload: &Bytes, definition: &Bytes) -> Bytes {
    let stored = StoredLoss { definition: Some(definition.clone()) };
    let mut bytes = BytesMut::with_capacity(payload.len() + stored.encoded_len());
    bytes.extend_from_slice(payload);
    bytes.extend_from_slice(&stored.encode_to_vec());
    bytes.freeze()
}

/// Returns the custom loss of a stored training request.
pub fn stored_loss(payload: &Bytes) -> Option<Result<Arc<CustomLoss>, OpError>> {
    let stored = StoredLoss::decode(payload.clone()).ok()?;
    stored.definition.map(|definition| read(&definition))
}

/// Reads a stored definition.
///
/// # Errors
///
/// A server error if it is not JSON, and a user error if this version no longer supports one of its nodes.
pub fn read(definition: &Bytes) -> Result<Arc<CustomLoss>, OpError> {
    let value: Value = serde_json::from_slice(definition)
        .map_err(|error| OpError::server(format!("a stored custom loss is unreadable: {error}")))?;
    CustomLoss::read(&value).map(Arc::new).map_err(|error| error.refusal())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_graph_has_so_many_bytes() {
        let request = CreateCustomLossRequest {
            session_id: "s".to_owned(),
            custom_loss_seq_id: 0,
            name: "n".repeat(MAX_GRAPH_BYTES),
            inputs: json!([]),
            graph: json!({}),
        };
        let refused = request.definition().unwrap_err().message;
        assert!(refused.starts_with("graph: 2621") && refused.ends_with("at most 262144 are allowed"), "{refused}");
    }
}

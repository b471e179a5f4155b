//! `create_custom_loss`, and custom losses within stored training requests.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use prost::Message;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use trainyard_protocol::OpError;
use trainyard_protocol::custom_loss::{CustomLoss, MAX_GRAPH_BYTES};
use utoipa::ToSchema;

/// Body of `create_custom_loss`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CreateCustomLossRequest {
    /// The client's session.
    pub session_id: String,
    /// Counts the session's custom losses.
    #[schema(minimum = 0)]
    pub custom_loss_seq_id: i64,
    /// Name of the function, for error texts.
    pub name: String,
    /// What the loss reads of each datum, in order: `{"name", "rank"}`. The first is `logprobs`.
    #[schema(value_type = Vec<Object>)]
    pub inputs: Value,
    /// `{"format": 1, "nodes": […]}`: the function as `torch.fx` traced it.
    #[schema(value_type = Object)]
    pub graph: Value,
}

/// What `retrieve_future` answers when a custom loss was created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreateCustomLossResponse {
    /// `<session>:loss:<n>`: the setting `loss_id` of the loss function `custom`.
    pub loss_id: String,
    /// Always `create_custom_loss`.
    #[serde(rename = "type")]
    pub kind: String,
}

impl CreateCustomLossResponse {
    /// For a custom loss that exists.
    pub fn new(loss_id: impl Into<String>) -> Self {
        Self { loss_id: loss_id.into(), kind: "create_custom_loss".to_owned() }
    }
}

impl CreateCustomLossRequest {
    /// Checks the graph. Returns the definition as it is stored.
    ///
    /// # Errors
    /// The user's, by field or node.
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

/// The custom loss of a stored training request: a field behind those of the client's message.
#[derive(Clone, PartialEq, Message)]
struct StoredLoss {
    #[prost(bytes = "bytes", optional, tag = "100000")]
    definition: Option<Bytes>,
}

/// A training request with the definition of its custom loss, so that a replay finds it wherever it happens. What a client
/// sent under this number has no effect: the last value counts.
pub fn with_definition(payload: &Bytes, definition: &Bytes) -> Bytes {
    let stored = StoredLoss { definition: Some(definition.clone()) };
    let mut bytes = BytesMut::with_capacity(payload.len() + stored.encoded_len());
    bytes.extend_from_slice(payload);
    bytes.extend_from_slice(&stored.encode_to_vec());
    bytes.freeze()
}

/// The custom loss of a stored training request.
pub fn stored_loss(payload: &Bytes) -> Option<Result<Arc<CustomLoss>, OpError>> {
    let stored = StoredLoss::decode(payload.clone()).ok()?;
    stored.definition.map(|definition| read(&definition))
}

/// A stored definition.
///
/// # Errors
/// The server's when it is no JSON, the user's when this version does not allow a node of it any more.
pub fn read(definition: &Bytes) -> Result<Arc<CustomLoss>, OpError> {
    let value: Value = serde_json::from_slice(definition)
        .map_err(|error| OpError::server(format!("a stored custom loss is unreadable: {error}")))?;
    CustomLoss::read(&value).map(Arc::new).map_err(|error| error.refusal())
}

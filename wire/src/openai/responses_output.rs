//! The output of `POST responses`: thoughts, texts and calls.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A part of a reply, with an id of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OutputItem {
    /// Thoughts that precede the answer.
    Reasoning {
        /// Id of the item.
        id: String,
        /// `in_progress`, `completed` or `incomplete`.
        status: String,
        /// Always empty: thoughts are returned as they are.
        #[schema(value_type = Vec<Value>)]
        summary: Vec<Value>,
        /// The thoughts, as one part.
        content: Vec<ReasoningText>,
    },
    /// Text that the model wrote.
    Message {
        /// Id of the item.
        id: String,
        /// `in_progress`, `completed` or `incomplete`.
        status: String,
        /// Always the text `assistant`.
        role: String,
        /// The text, as one part.
        content: Vec<OutputText>,
    },
    /// A call of a function.
    FunctionCall {
        /// Id of the item.
        id: String,
        /// Either `in_progress` or `completed`.
        status: String,
        /// Id of the call, which its output names.
        call_id: String,
        /// Name of the function.
        name: String,
        /// Arguments: a JSON object, encoded as text.
        arguments: String,
    },
}

/// The text of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutputText {
    /// Always the text `output_text`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the model wrote.
    pub text: String,
    /// Always empty, because texts have no sources here.
    #[schema(value_type = Vec<Value>)]
    pub annotations: Vec<Value>,
    /// Always empty: responses have no log-probabilities.
    #[schema(value_type = Vec<Value>)]
    pub logprobs: Vec<Value>,
}

/// The thoughts of a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReasoningText {
    /// Always the text `reasoning_text`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the model thought.
    pub text: String,
}

//! The conversation of `POST responses`: items, and the parts of their content.

use serde::Deserialize;
use utoipa::ToSchema;

use super::super::lists::TextOrParts;

/// The conversation of a request: a text of the user, or a list of items.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(untagged, from = "TextOrParts<InputItem>")]
pub enum ResponsesInput {
    /// A single text, as a string.
    Text(String),
    /// A list of items.
    Items(Vec<InputItem>),
}

impl From<TextOrParts<InputItem>> for ResponsesInput {
    fn from(input: TextOrParts<InputItem>) -> Self {
        match input {
            TextOrParts::Text(text) => Self::Text(text),
            TextOrParts::Parts(items) => Self::Items(items),
        }
    }
}

/// An item of a conversation: a `message`, a `function_call`, a `function_call_output` or a `reasoning`. Other types are
/// refused. Further fields, such as ids and states, have no effect.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct InputItem {
    /// Type of the item, which determines its other fields; `message` by default.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    /// Messages: the author, which is `system`, `developer`, `user` or `assistant`.
    #[serde(default)]
    pub role: Option<String>,
    /// Messages: their text or parts. `reasoning`: the thoughts, as parts of the type `reasoning_text`.
    #[serde(default)]
    pub content: Option<InputContent>,
    /// Calls and their outputs: the id of the call.
    #[serde(default)]
    pub call_id: Option<String>,
    /// Calls: the name of the function.
    #[serde(default)]
    pub name: Option<String>,
    /// Calls: the arguments, a JSON object as text.
    #[serde(default)]
    pub arguments: Option<String>,
    /// Outputs of calls: what the function returned.
    #[serde(default)]
    pub output: Option<InputContent>,
}

/// Content of an item: a text, or a list of parts.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(untagged, from = "TextOrParts<InputPart>")]
pub enum InputContent {
    /// A single text, as a string.
    Text(String),
    /// A list of parts.
    Parts(Vec<InputPart>),
}

impl From<TextOrParts<InputPart>> for InputContent {
    fn from(content: TextOrParts<InputPart>) -> Self {
        match content {
            TextOrParts::Text(text) => Self::Text(text),
            TextOrParts::Parts(parts) => Self::Parts(parts),
        }
    }
}

/// A part of an item. Other types than those below are refused.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct InputPart {
    /// Type of the part: `input_text`, `output_text`, `text`, `refusal`, `reasoning_text` or, in messages of users and
    /// outputs of calls, `input_image`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text of the part.
    #[serde(default)]
    pub text: Option<String>,
    /// `refusal` parts: the text.
    #[serde(default)]
    pub refusal: Option<String>,
    /// `input_image` parts: a data URI with a PNG or JPEG file. Other URLs are refused.
    #[serde(default)]
    pub image_url: Option<String>,
    /// `input_image` parts: refused unless it is `auto` or `high`, because the model sets the size.
    #[serde(default)]
    pub detail: Option<String>,
}

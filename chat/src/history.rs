//! Replies as they were returned, and digests by which the history of a request is compared with them.
//!
//! Thoughts are not compared, because many clients drop them, and neither are the ids of a reply's own calls. All
//! other members of messages, the tools and the variables of the template are.

use minijinja::Value as Ordered;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use trainyard_protocol::hex;

use super::output::Part;
use super::template::{Conversation, to_line};

/// Maximum number of replies of a history that are looked for, counted from its end.
const MOST_REPLIES: usize = 1_024;

/// A reply of the assistant, as it was returned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Text of the reply.
    pub content: String,
    /// Thoughts before the reply.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// Calls of tools, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<SaidCall>,
}

/// A call of a tool in a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaidCall {
    /// Name of the called function.
    pub name: String,
    /// Arguments of the call: JSON, as text.
    pub arguments: String,
}

impl Said {
    /// Adds a part of the completion.
    pub fn add(&mut self, part: &Part) {
        match part {
            Part::Text(text) => self.content.push_str(text),
            Part::Reasoning(text) => self.reasoning.push_str(text),
            Part::ToolCall(call) => {
                self.calls.push(SaidCall { name: call.name.clone(), arguments: call.arguments.clone() });
            }
        }
    }

    /// Reads an assistant's message as templates see it.
    fn of(message: &Ordered) -> Self {
        let calls = member(message, "tool_calls").try_iter().into_iter().flatten();
        Self {
            content: text_of(&member(message, "content")),
            reasoning: text_of(&member(message, "reasoning_content")),
            calls: calls.map(|call| SaidCall::of(&call)).collect(),
        }
    }

    /// Returns whether both replies have the same text up to white space around it, the same thoughts and calls.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let calls = |said: &Self| said.calls.iter().map(SaidCall::canonical).collect::<Vec<_>>();
        self.content.trim() == other.content.trim()
            && self.reasoning.trim() == other.reasoning.trim()
            && calls(self) == calls(other)
    }

    /// Returns a form that is the same for equal replies.
    fn canonical(&self) -> String {
        let calls: Vec<(String, String)> = self.calls.iter().map(SaidCall::canonical).collect();
        serde_json::json!(["assistant", self.content, calls]).to_string()
    }
}

impl SaidCall {
    fn of(call: &Ordered) -> Self {
        let function = member(call, "function");
        let (name, arguments) = (member(&function, "name"), member(&function, "arguments"));
        Self { name: text_of(&name), arguments: to_line(&arguments).unwrap_or_default() }
    }

    /// Returns the name, and the arguments as the Anthropic API has them, with sorted members.
    fn canonical(&self) -> (String, String) {
        let arguments = match serde_json::from_str(&self.arguments) {
            Ok(object @ Value::Object(_)) => object,
            Ok(other) => serde_json::json!({ "input": other }),
            Err(_) if self.arguments.trim().is_empty() => serde_json::json!({}),
            Err(_) => serde_json::json!({ "input": self.arguments }),
        };
        (self.name.clone(), sorted(&arguments).to_string())
    }
}

/// Returns a value whose objects have their members in the order of their names.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort_unstable();
            names.into_iter().filter_map(|name| Some((name.clone(), sorted(members.get(name)?)))).collect()
        }
        Value::Array(values) => values.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

pub(crate) fn member(value: &Ordered, name: &str) -> Ordered {
    value.get_attr(name).unwrap_or_default()
}

/// Returns the text of a content, which may have parts.
fn text_of(content: &Ordered) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let parts = content.try_iter().into_iter().flatten();
    parts.filter_map(|part| member(&part, "text").as_str().map(str::to_owned)).collect()
}

/// The beginnings of a conversation.
#[derive(Clone, Debug)]
pub struct History {
    /// Digests of the conversation up to each number of messages, from 0.
    digests: Vec<[u8; 32]>,
    /// Replies of the assistant, oldest first.
    replies: Vec<Reply>,
}

/// A reply of the assistant in a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Number of messages up to the reply, with it.
    pub messages: usize,
    /// Digest of these messages.
    pub digest: String,
    /// Id of its first call, if it calls tools.
    pub call_id: Option<String>,
}

impl History {
    /// Computes the digests of a conversation.
    pub fn of(conversation: &Conversation) -> Self {
        let written = |value: &Ordered| to_line(value).unwrap_or_default();
        let tools: Vec<String> = conversation.tools.iter().map(written).collect();
        let variables: Vec<(&String, String)> =
            conversation.variables.iter().map(|(name, value)| (name, written(value))).collect();
        let mut last: [u8; 32] = Sha256::digest(serde_json::json!([tools, variables]).to_string()).into();
        let (mut digests, mut replies) = (vec![last], Vec::new());
        for (index, message) in conversation.messages.iter().enumerate() {
            let is_reply = member(message, "role").as_str() == Some("assistant");
            last = next(&last, &if is_reply { Said::of(message).canonical() } else { written(message) });
            digests.push(last);
            if is_reply {
                let first = member(message, "tool_calls").get_item(&Ordered::from(0)).unwrap_or_default();
                let call_id = member(&first, "id").as_str().map(str::to_owned);
                replies.push(Reply { messages: index + 1, digest: hex(&last), call_id });
            }
        }
        Self { digests, replies }
    }

    /// Returns the number of messages of the conversation.
    pub fn messages(&self) -> usize {
        self.digests.len() - 1
    }

    /// Returns the latest replies of the assistant, the last one first.
    pub fn replies(&self) -> impl Iterator<Item = &Reply> {
        self.replies.iter().rev().take(MOST_REPLIES)
    }

    /// Returns the digest of the conversation followed by a reply.
    pub fn with_reply(&self, said: &Said) -> String {
        let last = self.digests.last().copied().unwrap_or_default();
        hex(&next(&last, &said.canonical()))
    }
}

fn next(last: &[u8; 32], message: &str) -> [u8; 32] {
    Sha256::new().chain_update(last).chain_update(message).finalize().into()
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;

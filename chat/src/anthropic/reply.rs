//! `POST messages`: the whole answer.

use serde_json::Value;
use trainyard_wire::anthropic::{AnthropicUsage, MessageResponse, ReplyBlock};

use super::super::output::Part;
use super::super::sequence::Piece;
use super::{call_id, stop_reason};

/// Returns an answer without content.
pub fn empty(id: String, model: String, usage: AnthropicUsage) -> MessageResponse {
    MessageResponse {
        id,
        kind: "message".to_owned(),
        role: "assistant".to_owned(),
        model,
        content: Vec::new(),
        stop_reason: None,
        stop_sequence: None,
        usage,
    }
}

/// The arguments of a call as a value; those that are not an object become the member `input` of one.
fn input(arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(object @ Value::Object(_)) => object,
        Ok(other) => serde_json::json!({ "input": other }),
        Err(_) => serde_json::json!({ "input": arguments }),
    }
}

/// Adds a piece of the completion to its answer. `calls` counts the calls of tools so far.
pub fn add(response: &mut MessageResponse, calls: &mut usize, piece: Piece) {
    match piece {
        Piece::Part(Part::Text(more)) => match response.content.last_mut() {
            Some(ReplyBlock::Text { text }) => text.push_str(&more),
            _ => response.content.push(ReplyBlock::Text { text: more }),
        },
        Piece::Part(Part::Reasoning(more)) => match response.content.last_mut() {
            Some(ReplyBlock::Thinking { thinking, .. }) => thinking.push_str(&more),
            _ => response.content.push(ReplyBlock::Thinking { thinking: more, signature: String::new() }),
        },
        Piece::Part(Part::ToolCall(call)) => {
            let id = call_id(&response.id, *calls);
            *calls += 1;
            let input = input(&call.arguments);
            response.content.push(ReplyBlock::ToolUse { id, name: call.name, input });
        }
        Piece::Tokens(_) => {}
        Piece::End(end) => {
            response.stop_reason = Some(stop_reason(&end).to_owned());
            response.stop_sequence = end.stop_string;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_an_object() {
        assert_eq!(input("{\"a\": 1}"), json!({"a": 1}));
        assert_eq!(input("[1]"), json!({"input": [1]}));
        assert_eq!(input("oops"), json!({"input": "oops"}));
    }
}

//! `POST messages`: the answer in events.

use std::collections::VecDeque;

use serde_json::{Value, json};
use trainyard_chat::anthropic::reply::empty;
use trainyard_chat::anthropic::{call_id, stop_reason};
use trainyard_chat::output::Part;
use trainyard_chat::sequence::{End, Piece};

use super::super::completion::Completion;
use super::super::error_form;
use super::super::sse::{EventSource, named};
use super::{message_id, usage};
use crate::error::ApiError;

/// The kinds of blocks that arrive in pieces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Text,
    Thinking,
}

/// A completion of a conversation as events.
pub(super) struct MessageStream {
    id: String,
    completion: Completion,
    ready: VecDeque<String>,
    /// The block that is not closed yet.
    open: Option<Open>,
    /// Number of blocks begun so far.
    blocks: usize,
    calls: usize,
    end: Option<End>,
    done: bool,
}

impl MessageStream {
    pub(super) fn new(model: String, completion: Completion) -> Result<Self, ApiError> {
        let id = message_id(completion.id());
        let message = empty(id.clone(), model, usage(completion.tokens));
        let start = named("message_start", &json!({"type": "message_start", "message": message}))?;
        let ready = VecDeque::from([start]);
        Ok(Self { id, completion, ready, open: None, blocks: 0, calls: 0, end: None, done: false })
    }

    fn send(&mut self, name: &'static str, mut event: Value) {
        event["type"] = name.into();
        self.ready.extend(named(name, &event));
    }

    fn close(&mut self) {
        if self.open.take().is_some() {
            let index = self.blocks - 1;
            self.send("content_block_stop", json!({"index": index}));
        }
    }

    /// The index of a block of this kind: the open one, or a new one.
    fn block(&mut self, kind: Open) -> usize {
        if self.open != Some(kind) {
            self.close();
            let block = match kind {
                Open::Text => json!({"type": "text", "text": ""}),
                Open::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
            };
            let index = self.blocks;
            self.send("content_block_start", json!({"index": index, "content_block": block}));
            self.blocks += 1;
            self.open = Some(kind);
        }
        self.blocks - 1
    }

    fn update(&mut self, piece: Piece) {
        match piece {
            Piece::Part(Part::Text(text)) => {
                let index = self.block(Open::Text);
                let delta = json!({"type": "text_delta", "text": text});
                self.send("content_block_delta", json!({"index": index, "delta": delta}));
            }
            Piece::Part(Part::Reasoning(text)) => {
                let index = self.block(Open::Thinking);
                let delta = json!({"type": "thinking_delta", "thinking": text});
                self.send("content_block_delta", json!({"index": index, "delta": delta}));
            }
            Piece::Part(Part::ToolCall(call)) => {
                self.close();
                let (index, id) = (self.blocks, call_id(&self.id, self.calls));
                (self.blocks, self.calls) = (self.blocks + 1, self.calls + 1);
                let block = json!({"type": "tool_use", "id": id, "name": call.name, "input": {}});
                self.send("content_block_start", json!({"index": index, "content_block": block}));
                let delta = json!({"type": "input_json_delta", "partial_json": call.arguments});
                self.send("content_block_delta", json!({"index": index, "delta": delta}));
                self.send("content_block_stop", json!({"index": index}));
            }
            Piece::Tokens(_) => {}
            Piece::End(end) => self.end = Some(end),
        }
    }

    fn finish(&mut self) {
        self.close();
        let end = self.end.take();
        let reason = end.as_ref().map(stop_reason);
        let sequence = end.and_then(|end| end.stop_string);
        let delta = json!({"stop_reason": reason, "stop_sequence": sequence});
        self.send("message_delta", json!({"delta": delta, "usage": usage(self.completion.tokens)}));
        self.send("message_stop", json!({}));
    }
}

impl EventSource for MessageStream {
    const PING: &'static str = "event: ping\ndata: {\"type\": \"ping\"}\n\n";

    async fn next(&mut self) -> Result<Option<String>, ApiError> {
        loop {
            if !self.ready.is_empty() {
                return Ok(Some(self.ready.drain(..).collect()));
            }
            if self.done {
                return Ok(None);
            }
            match self.completion.next().await? {
                Some(updates) => updates.into_iter().for_each(|(_, piece)| self.update(piece)),
                None => {
                    self.done = true;
                    self.finish();
                }
            }
        }
    }

    fn failure(error: &ApiError) -> String {
        let body = error_form::anthropic(error.status(), &error.shown());
        named("error", &body).unwrap_or_else(|_| Self::PING.to_owned())
    }
}

//! `POST chat/completions`: the answer in chunks.

use std::collections::VecDeque;
use std::sync::Arc;

use trainyard_chat::openai::chat_reply::tool_call;
use trainyard_chat::openai::finish_reason;
use trainyard_chat::openai::logprobs::of_chat;
use trainyard_chat::output::Part;
use trainyard_chat::sequence::Piece;
use trainyard_chat::texts::ModelText;
use trainyard_wire::openai::{ChatChunk, ChatChunkChoice, ChatDelta, ChatLogprobs, TokenLogprob, Usage};

use super::super::completion::Completion;
use super::super::sse::{self, EventSource};
use super::{DONE, Head, PING, failure, usage};
use crate::error::ApiError;

/// Completions of a conversation as chunks.
pub(super) struct ChatStream {
    head: Head,
    completion: Completion,
    text: Arc<ModelText>,
    top: u32,
    include_usage: bool,
    /// State of each completion's reply.
    replies: Vec<ReplyState>,
    /// Chunks that are ready to be sent.
    ready: VecDeque<String>,
    done: bool,
}

/// The sent part of a reply, and the part that waits for its next chunk.
#[derive(Default)]
struct ReplyState {
    calls: usize,
    logprobs: Vec<TokenLogprob>,
}

impl ChatStream {
    pub(super) fn new(head: Head, completion: Completion, text: Arc<ModelText>, top: u32, include_usage: bool) -> Self {
        let count = completion.count();
        let mut stream = Self {
            head,
            completion,
            text,
            top,
            include_usage,
            replies: (0..count).map(|_| ReplyState::default()).collect(),
            ready: VecDeque::new(),
            done: false,
        };
        for index in 0..count {
            let delta =
                ChatDelta { role: Some("assistant".to_owned()), content: Some(String::new()), ..ChatDelta::default() };
            stream.send_choice(index, delta, None);
        }
        stream
    }

    fn send(&mut self, choices: Vec<ChatChunkChoice>, usage: Option<Usage>) {
        let Head { id, created, model } = self.head.clone();
        let chunk = ChatChunk { id, object: "chat.completion.chunk".to_owned(), created, model, choices, usage };
        self.ready.extend(sse::data(&chunk));
    }

    fn send_choice(&mut self, index: usize, delta: ChatDelta, finish_reason: Option<String>) {
        let waiting = self.replies.get_mut(index).map(|reply| std::mem::take(&mut reply.logprobs)).unwrap_or_default();
        let logprobs = (!waiting.is_empty()).then_some(ChatLogprobs { content: waiting, refusal: None });
        self.send(vec![ChatChunkChoice { index, delta, logprobs, finish_reason }], None);
    }

    fn update(&mut self, index: usize, piece: Piece) {
        match piece {
            Piece::Part(Part::Text(text)) => {
                self.send_choice(index, ChatDelta { content: Some(text), ..ChatDelta::default() }, None);
            }
            Piece::Part(Part::Reasoning(text)) => {
                self.send_choice(index, ChatDelta { reasoning_content: Some(text), ..ChatDelta::default() }, None);
            }
            Piece::Part(Part::ToolCall(call)) => {
                let Some(reply) = self.replies.get_mut(index) else { return };
                let call = tool_call(&self.head.id, index, reply.calls, call, Some(reply.calls));
                reply.calls += 1;
                self.send_choice(index, ChatDelta { tool_calls: Some(vec![call]), ..ChatDelta::default() }, None);
            }
            Piece::Tokens(tokens) => {
                let new = of_chat(&self.text, &tokens, self.top);
                if let Some(reply) = self.replies.get_mut(index) {
                    reply.logprobs.extend(new);
                }
            }
            Piece::End(end) => self.send_choice(index, ChatDelta::default(), Some(finish_reason(&end).to_owned())),
        }
    }
}

impl EventSource for ChatStream {
    const PING: &'static str = PING;

    async fn next(&mut self) -> Result<Option<String>, ApiError> {
        loop {
            if !self.ready.is_empty() {
                return Ok(Some(self.ready.drain(..).collect()));
            }
            if self.done {
                return Ok(None);
            }
            match self.completion.next().await? {
                Some(updates) => updates.into_iter().for_each(|(index, piece)| self.update(index, piece)),
                None => {
                    self.done = true;
                    if self.include_usage {
                        self.send(Vec::new(), Some(usage(std::iter::once(&self.completion))));
                    }
                    self.ready.push_back(DONE.to_owned());
                }
            }
        }
    }

    fn failure(error: &ApiError) -> String {
        failure(error)
    }
}

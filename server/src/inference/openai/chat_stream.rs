//! `POST chat/completions`: the answer in chunks.

use std::collections::VecDeque;
use std::sync::Arc;

use trainyard_chat::openai::chat_reply::{TokenDetails, tool_call};
use trainyard_chat::openai::finish_reason;
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
    details: TokenDetails,
    include_usage: bool,
    /// Tokens of the prompt, until the first chunk contains them.
    prompt_token_ids: Option<Vec<u32>>,
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
    token_ids: Vec<u32>,
}

impl ChatStream {
    pub(super) fn new(
        head: Head,
        completion: Completion,
        text: Arc<ModelText>,
        details: TokenDetails,
        include_usage: bool,
    ) -> Self {
        let count = completion.count();
        let mut stream = Self {
            prompt_token_ids: details.ids.then(|| completion.prompt.clone()),
            head,
            completion,
            text,
            details,
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
        let object = "chat.completion.chunk".to_owned();
        let prompt_token_ids = self.prompt_token_ids.take();
        let chunk = ChatChunk { id, object, created, model, choices, usage, prompt_token_ids };
        self.ready.extend(sse::data(&chunk));
    }

    fn send_choice(&mut self, index: usize, delta: ChatDelta, finish_reason: Option<String>) {
        let Some(reply) = self.replies.get_mut(index) else { return };
        let (logprobs, ids) = (std::mem::take(&mut reply.logprobs), std::mem::take(&mut reply.token_ids));
        let logprobs = (!logprobs.is_empty()).then_some(ChatLogprobs { content: logprobs, refusal: None });
        let token_ids = self.details.ids.then_some(ids);
        self.send(vec![ChatChunkChoice { index, delta, logprobs, finish_reason, token_ids }], None);
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
                let Some(reply) = self.replies.get_mut(index) else { return };
                reply.logprobs.extend(self.details.logprobs(&self.text, &tokens));
                reply.token_ids.extend(tokens.iter().map(|token| token.id));
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

//! `POST completions`: the answer in chunks.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::future::select_all;
use trainyard_chat::openai::completion_choice::{Shown, delta};
use trainyard_chat::sequence::Piece;
use trainyard_chat::texts::ModelText;
use trainyard_wire::openai::{CompletionChoice, CompletionResponse, Usage};

use super::super::completion::{Completion, Update};
use super::super::sse::{self, EventSource};
use super::{DONE, Head, PING, failure, usage};
use crate::error::ApiError;

/// Completions of all prompts as chunks, in the order of their arrival.
pub(super) struct CompletionStream {
    head: Head,
    /// Completions of each prompt.
    all: Vec<Completion>,
    /// Whether the completions of each prompt are still running.
    open: Vec<bool>,
    text: Arc<ModelText>,
    shown: Shown,
    include_usage: bool,
    /// Characters of each choice so far.
    offsets: Vec<usize>,
    /// Whether a chunk of each choice was sent.
    begun: Vec<bool>,
    ready: VecDeque<String>,
    done: bool,
}

impl CompletionStream {
    pub(super) fn new(
        head: Head,
        all: Vec<Completion>,
        text: Arc<ModelText>,
        shown: Shown,
        include_usage: bool,
    ) -> Self {
        let choices = all.len() * shown.n;
        Self {
            head,
            open: vec![true; all.len()],
            all,
            text,
            shown,
            include_usage,
            offsets: vec![0; choices],
            begun: vec![false; choices],
            ready: VecDeque::new(),
            done: false,
        }
    }

    fn send(&mut self, choices: Vec<CompletionChoice>, usage: Option<Usage>) {
        let Head { id, created, model } = self.head.clone();
        let chunk = CompletionResponse { id, object: "text_completion".to_owned(), created, model, choices, usage };
        self.ready.extend(sse::data(&chunk));
    }

    fn update(&mut self, prompt: usize, at: usize, piece: Piece) {
        let index = prompt * self.shown.n + at;
        let Some((offset, begun)) = self.offsets.get_mut(index).zip(self.begun.get_mut(index)) else { return };
        let mut choice = delta(index, piece, &self.text, self.shown, offset);
        let has_tokens = choice.logprobs.is_some() || choice.token_ids.is_some();
        if !choice.text.is_empty() || has_tokens || choice.finish_reason.is_some() {
            if self.shown.token_ids && !std::mem::replace(begun, true) {
                choice.prompt_token_ids = self.all.get(prompt).map(|completion| completion.prompt.clone());
            }
            self.send(vec![choice], None);
        }
    }

    /// Waits for an update of any prompt; `None` after the end of all.
    async fn more(&mut self) -> Result<Option<(usize, Option<Vec<Update>>)>, ApiError> {
        let open = self.all.iter_mut().zip(&self.open).enumerate().filter(|(_, (_, open))| **open);
        let waits: Vec<_> =
            open.map(|(prompt, (completion, _))| Box::pin(async move { (prompt, completion.next().await) })).collect();
        if waits.is_empty() {
            return Ok(None);
        }
        let ((prompt, updates), _, _) = select_all(waits).await;
        Ok(Some((prompt, updates?)))
    }
}

impl EventSource for CompletionStream {
    const PING: &'static str = PING;

    async fn next(&mut self) -> Result<Option<String>, ApiError> {
        loop {
            if !self.ready.is_empty() {
                return Ok(Some(self.ready.drain(..).collect()));
            }
            if self.done {
                return Ok(None);
            }
            match self.more().await? {
                Some((prompt, Some(updates))) => {
                    updates.into_iter().for_each(|(at, piece)| self.update(prompt, at, piece));
                }
                Some((prompt, None)) => {
                    if let Some(open) = self.open.get_mut(prompt) {
                        *open = false;
                    }
                }
                None => {
                    self.done = true;
                    if self.include_usage {
                        self.send(Vec::new(), Some(usage(self.all.iter())));
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

//! `POST responses`: the answer, and the events by which it is made in a stream.

use serde_json::{Value, json};
use trainyard_wire::openai::{
    IncompleteDetails, OutputItem, OutputText, ReasoningText, ResponsesRequest, ResponsesResponse, ResponsesUsage,
};

use super::super::output::{Part, ToolCall};
use super::super::sequence::Piece;
use super::call_id;

const IN_PROGRESS: &str = "in_progress";
const COMPLETED: &str = "completed";
const INCOMPLETE: &str = "incomplete";

/// An event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Name of the event, which is its `type` too.
    pub name: &'static str,
    /// Fields of the event.
    pub fields: Value,
}

/// An answer under construction: pieces of the completion become items of its output.
pub struct Reply {
    response: ResponsesResponse,
    /// Id of the request, without a prefix.
    request: String,
    /// Whether the last item is thoughts or a text that may continue.
    is_open: bool,
    calls: usize,
    too_long: bool,
    reasoning_tokens: u64,
    /// Events that were not taken yet; `None` if nobody takes them.
    events: Option<Vec<Event>>,
    /// Number of events so far.
    sent: u64,
}

impl Reply {
    /// Begins the answer `id` to a request of the time `created_at`, in seconds since 1970, whose prompt has these
    /// tokens.
    pub fn new(request: ResponsesRequest, id: &str, created_at: i64, prompt: &[u32]) -> Self {
        let is_stream = request.stream;
        let mut reply = Self {
            response: begun(request, id, created_at, prompt),
            request: id.to_owned(),
            is_open: false,
            calls: 0,
            too_long: false,
            reasoning_tokens: 0,
            events: is_stream.then(Vec::new),
            sent: 0,
        };
        reply.send_response("response.created");
        reply.send_response("response.in_progress");
        reply
    }

    /// Takes the events since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.events.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Adds a piece of the completion.
    pub fn add(&mut self, piece: Piece) {
        match piece {
            Piece::Part(Part::Text(text)) => self.add_text(&text),
            Piece::Part(Part::Reasoning(text)) => self.add_thoughts(&text),
            Piece::Part(Part::ToolCall(call)) => self.add_call(call),
            Piece::Tokens(tokens) => {
                let ids = self.response.token_ids.iter_mut();
                ids.for_each(|ids| ids.extend(tokens.iter().map(|token| token.id)));
            }
            Piece::End(end) => (self.too_long, self.reasoning_tokens) = (end.too_long, end.reasoning_tokens),
        }
    }

    /// Ends the answer. `usage` counts its tokens, without those of thoughts.
    pub fn finish(&mut self, mut usage: ResponsesUsage) {
        let output = &self.response.output;
        let has_spoken = output.iter().any(|item| !matches!(item, OutputItem::Reasoning { .. }));
        if output.is_empty() || (!has_spoken && !self.too_long) {
            // A reply without any text is a message too, so that a client can say it back.
            self.add_text("");
        }
        let status = if self.too_long { INCOMPLETE } else { COMPLETED };
        self.close(status);
        usage.output_tokens_details.reasoning_tokens = self.reasoning_tokens;
        self.response.usage = Some(usage);
        self.response.status = status.to_owned();
        self.response.incomplete_details =
            self.too_long.then(|| IncompleteDetails { reason: "max_output_tokens".to_owned() });
        self.send_response(if self.too_long { "response.incomplete" } else { "response.completed" });
    }

    /// Returns the answer in its current state.
    pub fn into_response(self) -> ResponsesResponse {
        self.response
    }

    fn add_text(&mut self, more: &str) {
        if !self.is_open || !matches!(self.response.output.last(), Some(OutputItem::Message { .. })) {
            let id = format!("msg_{}_{}", self.request, self.response.output.len());
            let status = IN_PROGRESS.to_owned();
            self.open(OutputItem::Message { id, status, role: "assistant".to_owned(), content: Vec::new() });
            self.send_part("response.content_part.added");
        }
        if let Some(OutputItem::Message { content, .. }) = self.response.output.last_mut()
            && let Some(part) = content.last_mut()
        {
            part.text.push_str(more);
        }
        if !more.is_empty() {
            self.send_in_part("response.output_text.delta", || json!({ "delta": more, "logprobs": [] }));
        }
    }

    fn add_thoughts(&mut self, more: &str) {
        if !self.is_open || !matches!(self.response.output.last(), Some(OutputItem::Reasoning { .. })) {
            let id = format!("rs_{}_{}", self.request, self.response.output.len());
            let status = IN_PROGRESS.to_owned();
            self.open(OutputItem::Reasoning { id, status, summary: Vec::new(), content: Vec::new() });
            self.send_part("response.content_part.added");
        }
        if let Some(OutputItem::Reasoning { content, .. }) = self.response.output.last_mut()
            && let Some(part) = content.last_mut()
        {
            part.text.push_str(more);
        }
        self.send_in_part("response.reasoning_text.delta", || json!({ "delta": more }));
    }

    fn add_call(&mut self, call: ToolCall) {
        let id = format!("fc_{}_{}", self.request, self.response.output.len());
        let call_id = call_id(&self.request, 0, self.calls);
        self.calls += 1;
        let ToolCall { name, arguments: whole } = call;
        let status = IN_PROGRESS.to_owned();
        self.open(OutputItem::FunctionCall { id, status, call_id, name, arguments: String::new() });
        if let Some(OutputItem::FunctionCall { arguments, .. }) = self.response.output.last_mut() {
            arguments.push_str(&whole);
        }
        self.send_in_item("response.function_call_arguments.delta", || json!({ "delta": whole }));
        self.close(COMPLETED);
    }

    /// Adds an item behind the one that is open.
    fn open(&mut self, item: OutputItem) {
        self.close(COMPLETED);
        self.response.output.push(item);
        self.is_open = true;
        self.send_item("response.output_item.added");
        match self.response.output.last_mut() {
            Some(OutputItem::Message { content, .. }) => content.push(OutputText {
                kind: "output_text".to_owned(),
                text: String::new(),
                annotations: Vec::new(),
                logprobs: Vec::new(),
            }),
            Some(OutputItem::Reasoning { content, .. }) => {
                content.push(ReasoningText { kind: "reasoning_text".to_owned(), text: String::new() });
            }
            Some(OutputItem::FunctionCall { .. }) | None => {}
        }
    }

    /// Ends the item that is open.
    fn close(&mut self, ended: &str) {
        if !std::mem::replace(&mut self.is_open, false) {
            return;
        }
        let Some(item) = self.response.output.last_mut() else { return };
        let (OutputItem::Message { status, .. }
        | OutputItem::Reasoning { status, .. }
        | OutputItem::FunctionCall { status, .. }) = item;
        *status = ended.to_owned();
        match item {
            OutputItem::Message { content, .. } => {
                let text = content.last().map(|part| part.text.clone()).unwrap_or_default();
                self.send_in_part("response.output_text.done", || json!({ "text": text, "logprobs": [] }));
                self.send_part("response.content_part.done");
            }
            OutputItem::Reasoning { content, .. } => {
                let text = content.last().map(|part| part.text.clone()).unwrap_or_default();
                self.send_in_part("response.reasoning_text.done", || json!({ "text": text }));
                self.send_part("response.content_part.done");
            }
            OutputItem::FunctionCall { name, arguments, .. } => {
                let fields = json!({ "name": name, "arguments": arguments });
                self.send_in_item("response.function_call_arguments.done", || fields);
            }
        }
        self.send_item("response.output_item.done");
    }

    /// Adds an event, unless nobody takes it.
    fn send(&mut self, name: &'static str, fields: impl FnOnce(&ResponsesResponse) -> Value) {
        let Some(events) = &mut self.events else { return };
        let mut fields = fields(&self.response);
        fields["type"] = name.into();
        fields["sequence_number"] = self.sent.into();
        self.sent += 1;
        events.push(Event { name, fields });
    }

    fn send_response(&mut self, name: &'static str) {
        self.send(name, |response| json!({ "response": response }));
    }

    /// Adds an event with the last item.
    fn send_item(&mut self, name: &'static str) {
        self.send(name, |response| json!({ "output_index": last(response), "item": response.output.last() }));
    }

    /// Adds an event about the last item.
    fn send_in_item(&mut self, name: &'static str, fields: impl FnOnce() -> Value) {
        self.send(name, |response| {
            let mut fields = fields();
            fields["item_id"] = response.output.last().map(item_id).into();
            fields["output_index"] = last(response).into();
            fields
        });
    }

    /// Adds an event about the one part of the last item.
    fn send_in_part(&mut self, name: &'static str, fields: impl FnOnce() -> Value) {
        self.send_in_item(name, || {
            let mut fields = fields();
            fields["content_index"] = 0.into();
            fields
        });
    }

    /// Adds an event with the one part of the last item.
    fn send_part(&mut self, name: &'static str) {
        let part = match self.response.output.last() {
            Some(OutputItem::Message { content, .. }) => json!(content.last()),
            Some(OutputItem::Reasoning { content, .. }) => json!(content.last()),
            Some(OutputItem::FunctionCall { .. }) | None => return,
        };
        self.send_in_part(name, || json!({ "part": part }));
    }
}

/// Position of the last item.
fn last(response: &ResponsesResponse) -> usize {
    response.output.len().saturating_sub(1)
}

fn item_id(item: &OutputItem) -> String {
    let (OutputItem::Message { id, .. } | OutputItem::Reasoning { id, .. } | OutputItem::FunctionCall { id, .. }) =
        item;
    id.clone()
}

/// An answer before its output.
fn begun(request: ResponsesRequest, id: &str, created_at: i64, prompt: &[u32]) -> ResponsesResponse {
    ResponsesResponse {
        id: format!("resp_{id}"),
        object: "response".to_owned(),
        created_at,
        status: IN_PROGRESS.to_owned(),
        incomplete_details: None,
        error: None,
        model: request.model,
        output: Vec::new(),
        usage: None,
        instructions: request.instructions,
        max_output_tokens: request.max_output_tokens,
        metadata: request.metadata,
        parallel_tool_calls: request.parallel_tool_calls.unwrap_or(true),
        previous_response_id: None,
        store: false,
        background: false,
        temperature: request.temperature.unwrap_or(1.0),
        top_p: request.top_p.unwrap_or(1.0),
        text: request.text.unwrap_or_default(),
        tool_choice: request.tool_choice.unwrap_or_else(|| "auto".into()),
        tools: request.tools.unwrap_or_default(),
        truncation: "disabled".to_owned(),
        prompt_token_ids: request.return_token_ids.then(|| prompt.to_vec()),
        token_ids: request.return_token_ids.then(Vec::new),
    }
}

#[cfg(test)]
#[path = "responses_reply_tests.rs"]
mod tests;

//! `POST responses`: from its body to a sample, and the answer, whole or in events.

use trainyard_chat::openai::responses::{check_unsupported, conversation, settings};
use trainyard_chat::openai::responses_reply::{Event, Reply};
use trainyard_protocol::TenantId;
use trainyard_wire::openai::{InputTokensDetails, ResponsesRequest, ResponsesResponse, ResponsesUsage};

use super::super::agents::{Agent, Chat};
use super::super::completion::{Completion, Tokens};
use super::super::error_form;
use super::super::sampler::Sampler;
use super::super::sse::{self, EventSource};
use super::{Answered, PING, seconds};
use crate::error::ApiError;
use crate::state::AppState;

/// Answers a conversation.
///
/// # Errors
/// Fails if the request is wrong or can't be taken now.
pub(crate) async fn responses(
    state: &AppState,
    tenant: &TenantId,
    agent: Option<&Agent>,
    request: ResponsesRequest,
) -> Result<Answered<ResponsesResponse>, ApiError> {
    check_unsupported(&request)?;
    let settings = settings(&request)?;
    let sampler = Sampler::find(state, tenant, agent, &request.model).await?;
    let conversation = conversation(&request, sampler.text().template()?)?;
    let mut completion = sampler.reply(Chat { conversation, prefill: None }, settings).await?;
    let is_stream = request.stream;
    let mut reply = Reply::new(request, completion.id(), seconds(state), &completion.prompt);
    if is_stream {
        return Ok(Answered::Stream(sse::respond(ResponseStream { reply, completion, done: false })));
    }
    for (_, piece) in completion.rest().await? {
        reply.add(piece);
    }
    reply.finish(usage(completion.tokens));
    Ok(Answered::Whole(Box::new(reply.into_response())))
}

/// Counts the tokens of a request, apart from those of thoughts.
fn usage(tokens: Tokens) -> ResponsesUsage {
    ResponsesUsage {
        input_tokens: tokens.prompt,
        input_tokens_details: InputTokensDetails { cached_tokens: tokens.cached, cache_write_tokens: 0 },
        output_tokens: tokens.sampled,
        total_tokens: tokens.prompt + tokens.sampled,
        ..ResponsesUsage::default()
    }
}

/// A completion of a conversation as events.
struct ResponseStream {
    reply: Reply,
    completion: Completion,
    done: bool,
}

impl EventSource for ResponseStream {
    const PING: &'static str = PING;

    async fn next(&mut self) -> Result<Option<String>, ApiError> {
        loop {
            let events = self.reply.take_events();
            if !events.is_empty() {
                let write = |Event { name, fields }: Event| sse::named(name, &fields);
                return events.into_iter().map(write).collect::<Result<String, _>>().map(Some);
            }
            if self.done {
                return Ok(None);
            }
            match self.completion.next().await? {
                Some(updates) => updates.into_iter().for_each(|(_, piece)| self.reply.add(piece)),
                None => {
                    self.done = true;
                    self.reply.finish(usage(self.completion.tokens));
                }
            }
        }
    }

    /// An event of the documented form, with the error as an object too: clients raise it then.
    fn failure(error: &ApiError) -> String {
        let mut event = error_form::responses_value(error.status(), &error.shown());
        for name in ["code", "message", "param"] {
            event[name] = event["error"][name].clone();
        }
        event["type"] = "error".into();
        sse::named("error", &event).unwrap_or_else(|_| PING.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_an_event_that_names_the_field_of_this_api() {
        let error = ApiError::invalid("sampling_params.json_schema: no value fits it");
        let text = ResponseStream::failure(&error);
        let data = text.strip_prefix("event: error\ndata: ").unwrap_or_default();
        let event: serde_json::Value = serde_json::from_str(data).unwrap_or_default();
        assert_eq!((&event["type"], &event["param"]), (&"error".into(), &"text.format.schema".into()), "{text}");
        assert_eq!(event["error"]["message"], "text.format.schema: no value fits it");
        assert_eq!(event["message"], event["error"]["message"]);
    }
}

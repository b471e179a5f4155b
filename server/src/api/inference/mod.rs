//! Endpoints of the OpenAI and Anthropic APIs.

pub(super) mod anthropic_count_tokens;
pub(super) mod anthropic_messages;
pub(super) mod oai_chat_completions;
pub(super) mod oai_completions;
pub(super) mod oai_model;
pub(super) mod oai_models;
pub(super) mod oai_responses;

use crate::endpoint::table::endpoints;

endpoints! {
    keyed {
        get "/oai/api/v1/models" oai_models: Nothing, [];
        post "/oai/api/v1/completions" oai_completions: Sample, [Missing, Over];
        post "/oai/api/v1/chat/completions" oai_chat_completions: Sample, [Missing, Over];
        post "/oai/api/v1/responses" oai_responses: Sample, [Missing, Over];
        post "/anthropic/api/v1/messages" anthropic_messages: Sample, [Missing, Over];
        post "/anthropic/api/v1/messages/count_tokens" anthropic_count_tokens: Sample, [Missing];
    }
    open {}
}

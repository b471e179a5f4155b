//! Endpoints of the OpenAI and Anthropic APIs.

pub(super) mod anthropic_count_tokens;
pub(super) mod anthropic_messages;
pub(super) mod oai_chat_completions;
pub(super) mod oai_completions;
pub(super) mod oai_model;
pub(super) mod oai_models;

//! The OpenAI API: models, completions and chat completions, with extensions that open-source servers share.

mod chat;
mod chat_response;
mod completions;
mod models;
mod shared;

pub use chat::{ChatContent, ChatMessage, ChatRequest, ContentPart, FunctionCall, ImageUrl, ResponseFormat, ToolCall};
pub use chat_response::{
    ChatChoice, ChatChunk, ChatChunkChoice, ChatDelta, ChatLogprobs, ChatReply, ChatResponse, TokenLogprob, TopLogprob,
};
pub use completions::{CompletionChoice, CompletionLogprobs, CompletionPrompt, CompletionRequest, CompletionResponse};
pub use models::{ModelEntry, ModelsResponse};
pub use shared::{ErrorResponse, OpenAiError, StopStrings, StreamOptions, Usage};

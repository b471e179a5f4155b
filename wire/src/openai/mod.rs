//! The OpenAI API: models, completions, chat completions and responses, with extensions that open-source servers share.

mod chat;
mod chat_response;
mod completions;
mod models;
mod responses;
mod responses_reply;
mod shared;

pub use chat::{ChatContent, ChatMessage, ChatRequest, ContentPart, FunctionCall, ImageUrl, ResponseFormat, ToolCall};
pub use chat_response::{
    ChatChoice, ChatChunk, ChatChunkChoice, ChatDelta, ChatLogprobs, ChatReply, ChatResponse, TokenLogprob, TopLogprob,
};
pub use completions::{CompletionChoice, CompletionLogprobs, CompletionPrompt, CompletionRequest, CompletionResponse};
pub use models::{ModelEntry, ModelsResponse};
pub use responses::{
    InputContent, InputItem, InputPart, ReasoningConfig, ResponsesInput, ResponsesRequest, ResponsesStreamOptions,
    TextConfig, TextFormat,
};
pub use responses_reply::{
    IncompleteDetails, InputTokensDetails, OutputItem, OutputText, OutputTokensDetails, ReasoningText,
    ResponsesResponse, ResponsesUsage,
};
pub use shared::{ErrorResponse, OpenAiError, StopStrings, StreamOptions, Usage};

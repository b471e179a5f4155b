//! The OpenAI API: models, completions, chat completions and responses, with extensions that open-source servers share.

mod chat;
mod chat_response;
mod completions;
mod models;
mod responses;
mod responses_input;
mod responses_output;
mod responses_reply;
mod responses_text;
mod shared;

pub use chat::{ChatContent, ChatMessage, ChatRequest, ContentPart, FunctionCall, ImageUrl, ResponseFormat, ToolCall};
pub use chat_response::{
    ChatChoice, ChatChunk, ChatChunkChoice, ChatDelta, ChatLogprobs, ChatReply, ChatResponse, TokenLogprob, TopLogprob,
};
pub use completions::{CompletionChoice, CompletionLogprobs, CompletionPrompt, CompletionRequest, CompletionResponse};
pub use models::{ModelEntry, ModelsResponse};
pub use responses::{ReasoningConfig, ResponsesRequest, ResponsesStreamOptions};
pub use responses_input::{InputContent, InputItem, InputPart, ResponsesInput};
pub use responses_output::{OutputItem, OutputText, ReasoningText};
pub use responses_reply::{
    IncompleteDetails, InputTokensDetails, OutputTokensDetails, ResponsesResponse, ResponsesUsage,
};
pub use responses_text::{TextConfig, TextFormat};
pub use shared::{ErrorResponse, OpenAiError, StopStrings, StreamOptions, Usage};

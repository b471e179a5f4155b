//! The Anthropic API: messages.

mod request;
mod response;

pub use request::{
    AnthropicContent, AnthropicMessage, AnthropicTool, Block, CountTokensRequest, MessagesRequest, OutputConfig,
    Thinking, ToolChoice,
};
pub use response::{
    AnthropicError, AnthropicErrorResponse, AnthropicUsage, CountTokensResponse, MessageResponse, ReplyBlock,
};

//! The Anthropic API: requests and responses of `messages`.

mod request;
mod response;

pub use request::{
    AnthropicContent, AnthropicMessage, AnthropicTool, Block, CountTokensRequest, ImageSource, MessagesRequest,
    OutputConfig, Thinking, ToolChoice,
};
pub use response::{
    AnthropicError, AnthropicErrorResponse, AnthropicUsage, CountTokensResponse, MessageResponse, ReplyBlock,
};

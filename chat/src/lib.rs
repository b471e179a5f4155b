//! Text for models and from models: a request of the OpenAI or Anthropic API becomes a prompt, and the tokens of its
//! completions become an answer.
//!
//! | | |
//! |---|---|
//! | [`openai`], [`anthropic`] | requests to conversations and settings, completions to answers |
//! | [`conversation`], [`template`], [`images`], [`sent_image`] | conversations to prompts |
//! | [`history`], [`continuation`] | conversations whose earlier replies have known tokens |
//! | [`sequence`], [`output`] | tokens to text, thoughts and calls of tools |
//! | [`texts`], [`pieces`] | tokenizers, and the text of single tokens |
//! | [`settings`], [`forced_calls`] | settings of sampling, and the calls that a request demands |

pub mod anthropic;
mod channels;
pub mod continuation;
pub mod conversation;
mod detokenizer;
mod error;
pub mod forced_calls;
pub mod history;
pub mod images;
pub mod openai;
pub mod output;
pub mod pieces;
pub mod sent_image;
pub mod sequence;
pub mod settings;
mod stop;
pub mod template;
#[cfg(test)]
mod testing;
pub mod texts;

pub use self::error::ChatError;

//! Inference for clients that speak text: the way from a request of the OpenAI or Anthropic API to a sample, and from its
//! tokens to an answer. The endpoints themselves are in `api`, their bodies in `wire`.
//!
//! | | |
//! |---|---|
//! | `openai`, `anthropic` | requests to prompts, completions to answers |
//! | `completion`, `sequence` | tokens to text, thoughts and calls of tools |
//! | `generation`, `sampling_sessions`, `submit`, `model_name` | the way through the scheduler |
//! | `texts`, `template` | tokenizers and chat templates |
//! | `detokenizer`, `pieces`, `stop`, `output`, `settings` | parts of these |

pub(crate) mod anthropic;
mod completion;
mod conversation;
mod detokenizer;
pub(crate) mod error_form;
mod generation;
mod model_name;
pub(crate) mod openai;
mod output;
mod pieces;
mod sampling_sessions;
mod sequence;
mod settings;
pub(crate) mod sse;
mod stop;
pub(crate) mod submit;
mod template;
#[cfg(test)]
mod testing;
mod texts;

pub(crate) use self::pieces::pieces;
use self::sampling_sessions::SamplingSessions;
pub(crate) use self::sse::Answered;
pub(crate) use self::texts::ModelText;
use self::texts::ModelTexts;

/// State that requests share. Cheap to clone.
#[derive(Clone, Default)]
pub struct Inference {
    pub(crate) texts: ModelTexts,
    pub(crate) sessions: SamplingSessions,
}

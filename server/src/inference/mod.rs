//! Inference for clients that speak text: converts requests of the OpenAI and Anthropic APIs to samples, and sampled
//! tokens to replies. The endpoints themselves are in `api`, their bodies in `wire`, their forms in `trainyard_chat`.
//!
//! | | |
//! |---|---|
//! | `openai`, `anthropic` | requests to samples, samples to answers and events |
//! | `agents` | prompts that continue recorded tokens, and records of replies |
//! | `completion`, `generation` | the completions of one prompt, from its sample |
//! | `sampling_sessions`, `submit`, `model_name` | the way through the scheduler |
//! | `sampler` | the weights that a request names, and the way of its prompt to them |
//! | `conversation`, `texts` | prompts, and the tokenizers of the base models |

pub(crate) mod agents;
pub(crate) mod anthropic;
mod completion;
mod conversation;
pub(crate) mod error_form;
mod generation;
pub(crate) mod model_name;
pub(crate) mod openai;
mod sampler;
mod sampling_sessions;
pub(crate) mod sse;
pub(crate) mod submit;
mod texts;

use self::agents::Ledger;
use self::sampling_sessions::SamplingSessions;
pub(crate) use self::sse::Answered;
use self::texts::ModelTexts;
use trainyard_chat::ChatError;
pub(crate) use trainyard_chat::pieces::pieces;
pub(crate) use trainyard_chat::texts::ModelText;

use crate::error::ApiError;

/// State that requests share. Cheap to clone.
#[derive(Clone, Default)]
pub struct Inference {
    pub(crate) texts: ModelTexts,
    pub(crate) sessions: SamplingSessions,
    pub(crate) ledger: Ledger,
}

impl From<ChatError> for ApiError {
    fn from(error: ChatError) -> Self {
        match error {
            ChatError::Invalid(text) => Self::Invalid(text),
            ChatError::Internal(text) => Self::Internal(text),
        }
    }
}

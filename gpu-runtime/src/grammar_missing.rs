//! Output that follows a JSON schema, in a build that can't compile schemas: each schema is refused.

use trainyard_protocol::{CallMarks, OpError};

use crate::sampling::TokenMask;
use crate::stop::Detokenizer;

/// A compiler, of which this build makes none.
#[derive(Debug)]
#[allow(dead_code, reason = "never constructed in this build")]
pub(crate) struct GrammarCompiler(());

fn refused() -> OpError {
    OpError::user(
        "sampling_params.json_schema: this build has no grammars: build trainyard-server with `--features grammar`",
    )
}

impl GrammarCompiler {
    /// Refuses, as an error of the user.
    pub(crate) fn new(_: &Detokenizer, _: usize, _: &[u32]) -> Result<Self, OpError> {
        Err(refused())
    }

    pub(crate) fn compile(&self, _: &str) -> Result<Grammar, OpError> {
        Err(refused())
    }

    pub(crate) fn compile_calls(&self, _: &str, _: &CallMarks) -> Result<Grammar, OpError> {
        Err(refused())
    }
}

/// A grammar, of which this build makes none.
#[derive(Clone)]
#[allow(dead_code, reason = "never constructed in this build")]
pub(crate) struct Grammar(std::sync::Arc<TokenMask>);

impl Grammar {
    pub(crate) fn allowed(&self) -> &TokenMask {
        &self.0
    }

    pub(crate) fn push(&mut self, _: u32) -> Result<bool, OpError> {
        Err(refused())
    }
}

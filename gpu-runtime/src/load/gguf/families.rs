//! The families that can be loaded.

use super::architecture::{Architecture, LLAMA};
use super::metadata::GgufFile;
use super::{dense, hybrid, moe, recurrent};
use crate::config::LoadError;

/// Every family, sorted by name.
const ALL: &[Architecture] = &[
    moe::DEEPSEEK2,
    dense::GEMMA3,
    moe::GLM4_MOE,
    moe::GPT_OSS,
    hybrid::GRANITE,
    hybrid::GRANITE_HYBRID,
    hybrid::GRANITE_MOE,
    hybrid::LFM2,
    LLAMA,
    dense::MISTRAL3,
    recurrent::NEMOTRON_H,
    recurrent::NEMOTRON_H_MOE,
    dense::OLMO2,
    dense::PHI3,
    dense::QWEN2,
    dense::QWEN3,
    recurrent::QWEN35,
    recurrent::QWEN35_MOE,
    moe::QWEN3_MOE,
    dense::SMOLLM3,
];

/// The family of a file.
///
/// # Errors
/// `general.architecture` is absent, or names a family that the runtime does not have.
pub(super) fn of(file: &GgufFile) -> Result<&'static Architecture, LoadError> {
    let Some(name) = file.text("general.architecture")? else {
        return Err(file.malformed("metadata key general.architecture is missing"));
    };
    ALL.iter().find(|family| family.name == name).ok_or_else(|| {
        let supported: Vec<_> = ALL.iter().map(|family| family.name).collect();
        LoadError::Unsupported(format!("GGUF architecture {name:?} (supported: {})", supported.join(", ")))
    })
}

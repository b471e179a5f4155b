//! Checks that a file has the tensors of a configuration's parameter table.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::config::{LoadError, ModelConfig, TensorSource};
use crate::model::ParamTable;

/// The output projection, and the table that stands for it where both are tied.
pub(crate) const HEAD: &str = "lm_head.weight";
const EMBEDDING: &str = "model.embed_tokens.weight";
/// Elements of them that are compared at a time.
const PIECE: usize = 1 << 20;

/// Checks that every parameter of the model is there with the right extents.
pub(super) fn check(config: &ModelConfig, tensors: &dyn TensorSource) -> Result<(), LoadError> {
    let in_files = |name: &str| config.spelling.in_files(name);
    let mut unused: BTreeSet<String> = tensors.names().into_iter().collect();
    for param in ParamTable::new(config).specs {
        match tensors.shape(&param.name) {
            None => return Err(LoadError::MissingTensor(in_files(&param.name))),
            Some(found) if found != param.shape => {
                return Err(LoadError::WrongShape { name: in_files(&param.name), found, expected: param.shape });
            }
            Some(_) => match tensors.refusal(&param.name) {
                Some(refusal) => return Err(refusal),
                None => unused.remove(&param.name),
            },
        };
    }
    for (name, expected) in config.indexer_tensors() {
        match tensors.shape(&name) {
            None => return Err(LoadError::MissingTensor(in_files(&name))),
            Some(found) if found != expected => {
                return Err(LoadError::WrongShape { name: in_files(&name), found, expected });
            }
            Some(_) => tensors.refusal(&name).map_or(Ok(()), Err)?,
        }
    }
    unused.retain(|name| !config.spelling.is_kept(name));
    if config.tie_word_embeddings {
        unused.remove(HEAD);
    }
    for (name, _) in config.corrections() {
        unused.remove(&name);
    }
    if let Some(first) = unused.first() {
        tracing::warn!(
            tensor = in_files(first),
            count = unused.len(),
            "some tensors of the file are not used by the model"
        );
    }
    Ok(())
}

/// Unties the embeddings of a model whose file has an output projection of its own, whatever its configuration says. Returns
/// whether they were tied.
pub(super) fn untie(config: &mut ModelConfig, tensors: &dyn TensorSource) -> Result<bool, LoadError> {
    let Some(found) = tensors.shape(HEAD).filter(|_| config.tie_word_embeddings) else { return Ok(false) };
    let expected = vec![config.vocab_size, config.hidden_size];
    if found != expected {
        return Err(LoadError::WrongShape { name: HEAD.to_owned(), found, expected });
    }
    if tensors.shape(EMBEDDING) != Some(expected) || is_same(tensors, config.vocab_size * config.hidden_size)? {
        return Ok(false);
    }
    tracing::warn!("{HEAD} differs from {EMBEDDING}: it is used, although tie_word_embeddings is true");
    config.tie_word_embeddings = false;
    Ok(true)
}

/// Whether both tables have the same bits.
fn is_same(tensors: &dyn TensorSource, elements: usize) -> Result<bool, LoadError> {
    let bits = |name: &str, part: Range<usize>| {
        let values = tensors.read_part(name, part)?;
        Ok::<_, LoadError>(values.into_iter().map(f32::to_bits).collect::<Vec<_>>())
    };
    for start in (0..elements).step_by(PIECE) {
        let part = start..elements.min(start + PIECE);
        if bits(HEAD, part.clone())? != bits(EMBEDDING, part)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads what routers add to scores, of blocks whose rule has such a correction.
pub(super) fn read_corrections(config: &mut ModelConfig, tensors: &dyn TensorSource) -> Result<(), LoadError> {
    for (layer, block) in config.blocks.iter_mut().enumerate() {
        let Some(experts) = &mut block.experts else { continue };
        let Some(name) = experts.correction_name(layer) else { continue };
        let (expected, in_files) = (vec![experts.count], config.spelling.in_files(&name));
        match tensors.shape(&name) {
            None => return Err(LoadError::MissingTensor(in_files)),
            Some(found) if found != expected => return Err(LoadError::WrongShape { name: in_files, found, expected }),
            Some(_) => experts.correction = tensors.read(&name)?,
        }
        if experts.correction.iter().any(|value| !value.is_finite()) {
            let name = in_files;
            return Err(LoadError::Unsupported(format!("tensor {name} is not finite")));
        }
    }
    Ok(())
}

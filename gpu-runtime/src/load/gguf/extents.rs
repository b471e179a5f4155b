//! Numbers of blocks and of heads.

use super::architecture::Architecture;
use super::metadata::GgufFile;
use super::own::Own;
use crate::config::LoadError;

/// Number of decoder blocks, without those that only predict further tokens.
pub(super) fn layers(file: &GgufFile, family: &Architecture) -> Result<u64, LoadError> {
    let own = Own { file, arch: family.name };
    let blocks = own.required("block_count")?;
    let further = if family.predicts_further { own.integer("nextn_predict_layers")?.unwrap_or(0) } else { 0 };
    blocks.checked_sub(further).filter(|&layers| layers > 0 || further == 0).ok_or_else(|| {
        let key = own.key("nextn_predict_layers");
        file.malformed(format!("metadata key {key} is {further} of {blocks} blocks"))
    })
}

/// Number of key and value heads; `None` if the file does not say.
pub(super) fn kv_heads(file: &GgufFile, family: &Architecture) -> Result<Option<u64>, LoadError> {
    const KEY: &str = "attention.head_count_kv";
    let own = Own { file, arch: family.name };
    if family.has_heads_by_block {
        return one_of_blocks(&own, KEY, layers(file, family)?);
    }
    own.integer(KEY)
}

/// The one number that is not zero among those of the blocks; `None` if all of them are zero.
pub(super) fn one_of_blocks(own: &Own<'_>, name: &str, blocks: u64) -> Result<Option<u64>, LoadError> {
    let all = own.by_block(name, blocks)?;
    let mut found = all.iter().take(usize::try_from(blocks).unwrap_or(usize::MAX)).filter(|&&number| number > 0);
    let Some(&first) = found.next() else { return Ok(None) };
    match found.find(|&&number| number != first) {
        None => Ok(Some(first)),
        Some(other) => {
            let key = own.key(name);
            Err(LoadError::Unsupported(format!("{key} {first} and {other} (supported: one number and 0)")))
        }
    }
}

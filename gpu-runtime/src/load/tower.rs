//! The vision tower of a folder: whether it exists, and whether it matches its preprocessor.

use std::path::Path;

use trainyard_images::{Preprocessor, Size};

use super::errors::{io, malformed};
use crate::config::{LoadError, ModelConfig, TensorSource, VisionConfig};

const PREPROCESSOR: &str = "preprocessor_config.json";
/// Bytes of that file. Released ones have less than a thousand.
const MAX_PREPROCESSOR: u64 = 1 << 16;

/// Adds the preprocessor's settings to the configuration of the tower, and checks the extents of its tensors. A folder without the
/// tower's tensors, or without the settings, has a text model that does not take images.
pub(super) fn complete(config: &mut ModelConfig, folder: &Path, tensors: &dyn TensorSource) -> Result<(), LoadError> {
    let Some(vision) = &mut config.vision else { return Ok(()) };
    let own = vision.tensors();
    let path = folder.join(PREPROCESSOR);
    let has_tower = own.iter().any(|tensor| tensors.shape(&tensor.name).is_some());
    if !has_tower || !path.is_file() {
        let missing = if has_tower { PREPROCESSOR } else { "tensors of a vision tower" };
        tracing::warn!(folder = %folder.display(), "the folder lacks {missing}: the model does not take images");
        config.vision = None;
        return Ok(());
    }
    for tensor in own {
        let in_files = || config.spelling.in_files(&tensor.name);
        match tensors.shape(&tensor.name) {
            None => return Err(LoadError::MissingTensor(in_files())),
            Some(found) if !tensor.fits(&found) => {
                return Err(LoadError::WrongShape { name: in_files(), found, expected: tensor.shape });
            }
            Some(_) => {}
        }
        if let Some(refusal) = tensors.refusal(&tensor.name) {
            return Err(refusal);
        }
    }
    let size = std::fs::metadata(&path).map_err(|e| io(&path, e))?.len();
    if size > MAX_PREPROCESSOR {
        return Err(malformed(&path, format!("{size} bytes, at most {MAX_PREPROCESSOR}")));
    }
    let text = std::fs::read_to_string(&path).map_err(|e| io(&path, e))?;
    check_preprocessor(vision, &text).map_err(|reason| malformed(&path, reason))?;
    vision.preprocessor = text;
    Ok(())
}

/// Checks that patches have the form that the tower reads.
fn check_preprocessor(vision: &VisionConfig, text: &str) -> Result<(), String> {
    let preprocessor = Preprocessor::from_json(text).map_err(|error| error.to_string())?;
    let layout = preprocessor.layout(Size::new(64, 64)).map_err(|error| error.to_string())?;
    let found = [layout.patch_dim(), layout.merge() as usize];
    let expected = [vision.patch_dim, vision.merge];
    if found == expected {
        return Ok(());
    }
    Err(format!(
        "patches have {} values and {} patches a token's side, expected {} and {} by vision_config",
        found[0], found[1], expected[0], expected[1]
    ))
}

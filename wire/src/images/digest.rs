//! The digest of an image, by which it is decoded and cached once.

use sha2::{Digest, Sha256};
use trainyard_images::{Format, Size};
use trainyard_protocol::{ImageDigest, Vision};

/// Returns the digest of what decides an image's patches. Fields of variable length come with their length or last.
pub(super) fn digest(vision: &Vision, format: Format, counted: Size, data: &[u8]) -> ImageDigest {
    let format = format.to_string();
    let mut hash = Sha256::new();
    for text in [vision.preprocessor.as_bytes(), format.as_bytes()] {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    hash.update(counted.width.to_le_bytes());
    hash.update(counted.height.to_le_bytes());
    hash.update(data);
    ImageDigest(hash.finalize().into())
}

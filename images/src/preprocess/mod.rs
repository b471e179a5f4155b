//! Patches of an image for a vision tower, as a model's `preprocessor_config.json` defines them.

mod error;
mod fields;
mod kimi;
mod layout;
mod normalization;
mod patches;
mod qwen;
mod settings;

use crate::{ImageError, RgbImage, Size};

pub use error::SettingsError;
pub use layout::{Layout, Place};
pub use patches::Patches;

use kimi::Kimi;
use normalization::Normalization;
use qwen::Qwen;

/// The rule by which a model's images become patches.
#[derive(Debug, Clone, PartialEq)]
pub struct Preprocessor {
    rule: Rule,
    normalization: Normalization,
}

/// How images are resized and ordered.
#[derive(Debug, Clone, PartialEq)]
enum Rule {
    Qwen(Qwen),
    Kimi(Kimi),
}

impl Preprocessor {
    /// Reads the content of a model's `preprocessor_config.json`.
    ///
    /// # Errors
    /// Fails if the text is not a JSON object, the processor is unknown, a value is outside its range, or a setting
    /// would change numbers in a way that is not implemented.
    pub fn from_json(text: &str) -> Result<Self, SettingsError> {
        settings::read(text)
    }

    /// Returns the size, grid and tokens of an image of this width and height.
    ///
    /// # Errors
    /// [`ImageError::Empty`], and [`ImageError::TooNarrow`] if the rule has a largest aspect ratio.
    pub fn layout(&self, size: Size) -> Result<Layout, ImageError> {
        if size.width == 0 || size.height == 0 {
            return Err(ImageError::Empty(size));
        }
        match &self.rule {
            Rule::Qwen(rule) => rule.layout(size),
            Rule::Kimi(rule) => Ok(rule.layout(size)),
        }
    }

    /// Returns a number of patches that no image exceeds whose sides have at most `side` pixels, by the settings.
    pub fn most_patches(&self, side: u32) -> usize {
        match &self.rule {
            Rule::Qwen(rule) => rule.layout(Size::new(side, side)).map_or(0, |layout| layout.patches()),
            Rule::Kimi(rule) => rule.most_patches(),
        }
    }

    /// Resizes an image and lays it out as patches. The layout is that of `counted`: the image's own size, or the one
    /// that the client states in its place.
    ///
    /// # Errors
    /// Errors of [`Preprocessor::layout`].
    pub fn patches(&self, image: &RgbImage, counted: Size) -> Result<Patches, ImageError> {
        let layout = self.layout(counted)?;
        Ok(Patches::new(image, layout, &self.normalization))
    }
}

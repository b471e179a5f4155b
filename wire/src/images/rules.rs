//! Rules by which a model and the configuration accept images.

use trainyard_images::Limits;
use trainyard_protocol::limits::{MAX_IMAGE_PIXELS, MAX_IMAGES};
use trainyard_protocol::{BaseModel, ImageSpan, OpError, Vision};

/// Limits on the images of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageLimits {
    /// Limits on each image.
    pub image: Limits,
    /// Maximum number of images of a request. An image that is repeated counts each time.
    pub images: usize,
    /// Maximum number of pixels of all different images of a request: see [`super::ImageCost::pixels`].
    pub pixels: u64,
}

impl Default for ImageLimits {
    fn default() -> Self {
        Self { image: Limits::default(), images: MAX_IMAGES, pixels: MAX_IMAGE_PIXELS }
    }
}

/// Rules by which a model accepts images.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageRules {
    model: String,
    context: usize,
    vision: Option<Vision>,
    limits: ImageLimits,
}

impl ImageRules {
    /// Returns the rules of a model.
    pub fn new(model: &BaseModel, limits: ImageLimits) -> Self {
        let BaseModel { name, max_context_length, vision, .. } = model;
        Self { model: name.clone(), context: *max_context_length, vision: vision.clone(), limits }
    }

    /// Returns the rules of a model that takes no images.
    pub fn text_only(model: &str) -> Self {
        Self { model: model.to_owned(), context: 0, vision: None, limits: ImageLimits::default() }
    }

    /// Refuses tokens of a client that stand for images, because the positions of images would be ambiguous.
    ///
    /// # Errors
    /// A text about the first such token outside of `images`, which are in ascending order.
    pub fn check_tokens(&self, tokens: &[i64], images: &[ImageSpan]) -> Result<(), String> {
        let Some(vision) = &self.vision else { return Ok(()) };
        let mut start = 0;
        let ends = images.iter().map(|image| (image.start, image.start + image.tokens));
        for (end, next) in ends.chain([(tokens.len(), tokens.len())]) {
            for (at, token) in tokens.iter().enumerate().take(end).skip(start) {
                if vision.placeholders.iter().any(|&placeholder| i64::from(placeholder) == *token) {
                    let model = &self.model;
                    return Err(format!(
                        "token {at} is {token}, which stands for images in model {model}: send an image chunk instead"
                    ));
                }
            }
            start = next;
        }
        Ok(())
    }

    /// Returns the rules of the model's tower.
    ///
    /// # Errors
    /// A user error if the model has no tower.
    pub fn vision(&self) -> Result<&Vision, OpError> {
        self.vision.as_ref().ok_or_else(|| OpError::user(format!("model {} does not take images", self.model)))
    }

    /// Returns the model's name.
    pub(super) fn model(&self) -> &str {
        &self.model
    }

    /// Returns the number of tokens that the model's context window holds.
    pub(super) fn context(&self) -> usize {
        self.context
    }

    /// Returns the limits on images.
    pub fn limits(&self) -> &ImageLimits {
        &self.limits
    }
}

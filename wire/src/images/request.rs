//! The images of one request: their tokens, digests and cost.

use std::collections::BTreeMap;
use std::sync::Arc;

use trainyard_images::{Format, Preprocessor, Size, dimensions};
use trainyard_protocol::{Image, ImageDigest, ImageSpan, OpError};

use super::digest::digest;
use super::read_settings;
use super::rules::ImageRules;

/// An image of a request as its client sends it, unchecked.
#[derive(Clone, Copy, Debug)]
pub struct SentImage<'a> {
    /// Bytes of the file.
    pub data: &'a [u8],
    /// Name of the file's format.
    pub format: &'a str,
    /// Number of tokens that the client expects.
    pub expected_tokens: Option<i64>,
    /// Size from which tokens are counted instead of the file's.
    pub override_dimensions: Option<Size>,
}

/// Cost of the images of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageCost {
    /// Number of images, repeated ones included.
    pub images: usize,
    /// Sum over different images of the pixels of the file, or of those after resizing where these are more.
    pub pixels: u64,
}

/// The images of one request, which are counted and checked one after the other.
pub struct RequestImages<'a> {
    rules: &'a ImageRules,
    /// Read when the first image is counted.
    preprocessor: Option<Preprocessor>,
    cost: ImageCost,
    /// Files by digest, so that an image that is repeated is held once.
    files: BTreeMap<ImageDigest, Arc<[u8]>>,
}

impl<'a> RequestImages<'a> {
    /// Returns the counter of a request to a model with these rules.
    pub fn new(rules: &'a ImageRules) -> Self {
        Self { rules, preprocessor: None, cost: ImageCost::default(), files: BTreeMap::new() }
    }

    /// Returns the cost of the images so far.
    pub fn cost(&self) -> ImageCost {
        self.cost
    }

    /// Checks an image and appends its tokens.
    ///
    /// # Errors
    /// A user error if the model or a limit refuses the image, or if it takes another number of tokens than its client
    /// expects. A server error if the model's settings can't be read.
    pub fn append(&mut self, input: &mut InputTokens, sent: SentImage<'_>) -> Result<(), OpError> {
        let vision = self.rules.vision()?;
        let format: Format = sent.format.parse().map_err(user)?;
        let limits = self.rules.limits();
        if self.cost.images >= limits.images {
            return Err(OpError::user(format!("the request has more than {} images", limits.images)));
        }
        let file = dimensions(sent.data, format, &limits.image).map_err(user)?;
        if let Some(size) = sent.override_dimensions {
            let refused = |error| OpError::user(format!("override_dimensions: {error}"));
            limits.image.check_size(size).map_err(refused)?;
        }
        let counted = sent.override_dimensions.unwrap_or(file);
        let preprocessor = match &self.preprocessor {
            Some(read) => read,
            None => self.preprocessor.insert(read_settings(self.rules.model(), vision)?),
        };
        let layout = preprocessor.layout(counted).map_err(user)?;
        let tokens = layout.tokens();
        if let Some(expected) = sent.expected_tokens.filter(|&expected| usize::try_from(expected) != Ok(tokens)) {
            return Err(OpError::user(format!(
                "expected_tokens is {expected}, but an image of {counted} pixels takes {tokens} tokens"
            )));
        }
        if input.tokens.len().saturating_add(tokens) > self.rules.context() {
            return Err(OpError::user(format!(
                "{} tokens and the image's {tokens} exceed the model's context window of {}",
                input.tokens.len(),
                self.rules.context()
            )));
        }
        let digest = digest(vision, format, counted, sent.data);
        let data = match self.files.get(&digest) {
            Some(data) => Arc::clone(data),
            None => {
                let pixels = self.cost.pixels.saturating_add(file.pixels().max(layout.resized().pixels()));
                if pixels > limits.pixels {
                    return Err(OpError::user(format!(
                        "the images of the request have {pixels} pixels up to this one, above the limit of {}",
                        limits.pixels
                    )));
                }
                self.cost.pixels = pixels;
                let data: Arc<[u8]> = Arc::from(sent.data);
                self.files.insert(digest, Arc::clone(&data));
                data
            }
        };
        self.cost.images += 1;
        let start = input.tokens.len();
        input.tokens.resize(start + tokens, vision.image_token.into());
        input.images.push(ImageSpan { start, tokens, image: Image { format, data, counted, digest } });
        Ok(())
    }
}

/// Tokens of a model input, with the images among them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputTokens {
    /// Token ids, with a placeholder at each position of an image.
    pub tokens: Vec<i64>,
    /// Images in ascending order.
    pub images: Vec<ImageSpan>,
}

fn user(error: impl std::fmt::Display) -> OpError {
    OpError::user(error.to_string())
}

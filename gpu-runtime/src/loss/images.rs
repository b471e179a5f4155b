//! Checks of the images of a model input.

use std::sync::Arc;

use trainyard_protocol::{BaseModel, DecodedImages, ImageSpan, OpError, PreparedImage, Vision};

/// Rules of a model for the images of its inputs.
#[derive(Clone, Debug)]
pub struct ImageRules {
    /// Name of the model, for error texts.
    model: String,
    vision: Option<Vision>,
}

impl ImageRules {
    /// Returns the image rules of a model.
    pub fn new(model: &BaseModel) -> Self {
        Self::of(&model.name, model.vision.clone())
    }

    /// Rules of a model of this name, with images as described.
    pub(crate) fn of(model: &str, vision: Option<Vision>) -> Self {
        Self { model: model.to_owned(), vision }
    }

    /// What clients need to know of the model's images, if it takes images.
    pub(crate) fn vision(&self) -> Option<&Vision> {
        self.vision.as_ref()
    }

    /// Joins images with their patches. `location` names the input in error texts.
    ///
    /// # Errors
    /// A user error if the model has no vision tower, or if a token outside of images is a placeholder. A server error if
    /// spans do not match tokens or patches.
    pub fn prepare(
        &self,
        location: &str,
        tokens: &[i64],
        spans: &[ImageSpan],
        decoded: &DecodedImages,
    ) -> Result<Vec<PreparedImage>, OpError> {
        let Some(vision) = &self.vision else {
            return match spans {
                [] => Ok(Vec::new()),
                _ => Err(OpError::user(format!("{location}: model {} does not take images", self.model))),
            };
        };
        let mut images = Vec::with_capacity(spans.len());
        let mut next = 0;
        for span in spans {
            let end = span.start.checked_add(span.tokens).filter(|&end| end <= tokens.len());
            let Some(end) = end.filter(|&end| span.start >= next && end > span.start) else {
                return Err(inconsistent(location, "images overlap or exceed the tokens"));
            };
            if tokens[span.start..end].iter().any(|&token| token != i64::from(vision.image_token)) {
                return Err(inconsistent(location, "an image's tokens are not the image token"));
            }
            let patches = decoded.get(&span.image.digest);
            let Some(patches) = patches.filter(|patches| patches.layout().tokens() == span.tokens) else {
                return Err(inconsistent(location, "an image was not decoded, or gave a different number of tokens"));
            };
            refuse_placeholders(location, vision, next, &tokens[next..span.start])?;
            images.push(PreparedImage { start: span.start, digest: span.image.digest, patches: Arc::clone(patches) });
            next = end;
        }
        refuse_placeholders(location, vision, next, &tokens[next..])?;
        Ok(images)
    }
}

fn refuse_placeholders(location: &str, vision: &Vision, first: usize, tokens: &[i64]) -> Result<(), OpError> {
    let is_placeholder = |&token: &i64| u32::try_from(token).is_ok_and(|token| vision.placeholders.contains(&token));
    match tokens.iter().position(is_placeholder) {
        None => Ok(()),
        Some(at) => Err(OpError::user(format!(
            "{location}: token {} at position {} stands for an image; send an image chunk instead",
            tokens[at],
            first + at
        ))),
    }
}

fn inconsistent(location: &str, reason: &str) -> OpError {
    OpError::server(format!("{location}: {reason}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use trainyard_images::{Format, Preprocessor, RgbImage, Size};
    use trainyard_protocol::{Category, Image, ImageDigest};

    use super::*;

    const SETTINGS: &str = r#"{"image_processor_type": "Qwen2VLImageProcessorFast", "patch_size": 4, "merge_size": 2,
        "temporal_patch_size": 2, "size": {"shortest_edge": 64, "longest_edge": 4096}}"#;

    fn rules(vision: bool) -> ImageRules {
        let vision = vision.then(|| Vision { preprocessor: SETTINGS.into(), image_token: 7, placeholders: vec![7, 8] });
        let (max_context_length, vocab_size) = (64, 10);
        let name = "m".to_owned();
        ImageRules::new(&BaseModel { name, arch: "t".into(), max_context_length, vocab_size, parameters: 1, vision })
    }

    /// An image of 6 tokens at `start`, with its patches.
    fn span(start: usize) -> (ImageSpan, DecodedImages) {
        let size = Size::new(24, 16);
        let pixels = RgbImage::new(size, vec![9; 24 * 16 * 3]).unwrap();
        let patches = Preprocessor::from_json(SETTINGS).unwrap().patches(&pixels, size).unwrap();
        let digest = ImageDigest([1; 32]);
        let image = Image { format: Format::Png, data: Arc::from([0_u8; 4]), counted: size, digest };
        (ImageSpan { start, tokens: 6, image }, DecodedImages::from([(digest, Arc::new(patches))]))
    }

    fn tokens() -> Vec<i64> {
        [vec![1], vec![7; 6], vec![2]].concat()
    }

    #[test]
    fn images_are_joined_with_their_patches() {
        let (span, decoded) = span(1);
        let images = rules(true).prepare("prompt", &tokens(), std::slice::from_ref(&span), &decoded).unwrap();
        assert_eq!((images[0].start, images[0].patches.layout().tokens()), (1, 6));
        assert!(rules(false).prepare("prompt", &tokens(), &[], &decoded).unwrap().is_empty());
        let error = rules(false).prepare("prompt", &tokens(), &[span], &decoded).unwrap_err();
        assert_eq!((error.category, error.message.as_str()), (Category::User, "prompt: model m does not take images"));
    }

    #[test]
    fn placeholders_outside_of_images_are_refused() {
        let (span, decoded) = span(1);
        let spans = std::slice::from_ref(&span);
        let mut wrong = tokens();
        wrong.push(8);
        let error = rules(true).prepare("prompt", &wrong, spans, &decoded).unwrap_err();
        assert_eq!(error.category, Category::User);
        assert!(error.message.starts_with("prompt: token 8 at position 8 stands for an image"), "{error}");
        assert!(rules(true).prepare("prompt", &[7, 1], &[], &decoded).is_err());
    }

    #[test]
    fn spans_that_do_not_match_are_the_servers_error() {
        let (good, decoded) = span(1);
        let cases = [
            (vec![ImageSpan { start: 2, ..good.clone() }], decoded.clone()),
            (vec![ImageSpan { start: usize::MAX, ..good.clone() }], decoded.clone()),
            (vec![ImageSpan { tokens: 5, ..good.clone() }], decoded.clone()),
            (vec![ImageSpan { tokens: 0, ..good.clone() }], decoded.clone()),
            (vec![good.clone(), good.clone()], decoded),
            (vec![good], DecodedImages::new()),
        ];
        for (spans, decoded) in cases {
            let error = rules(true).prepare("prompt", &tokens(), &spans, &decoded).unwrap_err();
            assert_eq!(error.category, Category::Server, "{error}");
        }
    }
}

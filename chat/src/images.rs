//! Images of conversations: from the parts of messages to places in the prompt.

use minijinja::Value as Ordered;
use trainyard_protocol::OpError;
use trainyard_wire::images::{ImageRules, InputTokens, RequestImages, SentImage};

use super::conversation::map;
use super::sent_image::ChatImage;
use crate::error::ChatError;

/// A part of a message.
pub(crate) enum Piece<'a> {
    Text(&'a str),
    /// Placeholder for the next one of the conversation's images.
    Image,
}

/// Returns the content of a message as templates see it: a text, or a list if there are images.
pub(crate) fn content(pieces: &[Piece<'_>]) -> Ordered {
    let texts: Option<Vec<&str>> = pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => Some(*text),
            Piece::Image => None,
        })
        .collect();
    if let Some(texts) = texts {
        return Ordered::from(texts.join("\n"));
    }
    let part = |piece: &Piece<'_>| match piece {
        Piece::Text(text) => map([("type", Ordered::from("text")), ("text", Ordered::from(*text))]),
        Piece::Image => map([("type", Ordered::from("image"))]),
    };
    Ordered::from(pieces.iter().map(part).collect::<Vec<_>>())
}

/// Replaces the placeholder of each image in a prompt by the tokens that the image takes.
///
/// # Errors
/// Fails if the model or a limit refuses an image, or if the prompt has another number of placeholders than images.
pub fn place(tokens: &[u32], images: &[ChatImage], rules: &ImageRules) -> Result<InputTokens, ChatError> {
    let mut input = InputTokens::default();
    let placeholder = rules.vision()?.image_token;
    let places = tokens.iter().filter(|&&token| token == placeholder).count();
    if places != images.len() {
        return Err(ChatError::invalid(format!(
            "messages: the conversation has {} images, but the model's chat template and the texts make {places} places \
             for images",
            images.len()
        )));
    }
    let mut request = RequestImages::new(rules);
    let mut next = images.iter();
    for &token in tokens {
        match (token == placeholder).then(|| next.next()).flatten() {
            Some(image) => request.append(&mut input, image.sent()).map_err(|error| at(image, error))?,
            None => input.tokens.push(token.into()),
        }
    }
    Ok(input)
}

/// Refuses images if the model takes none.
///
/// # Errors
/// Names the first image.
pub(crate) fn check_model(images: &[ChatImage], rules: &ImageRules) -> Result<(), ChatError> {
    match images.first() {
        Some(image) => rules.vision().map(drop).map_err(|error| at(image, error)),
        None => Ok(()),
    }
}

impl ChatImage {
    fn sent(&self) -> SentImage<'_> {
        SentImage { data: &self.data, format: self.format, expected_tokens: None, override_dimensions: None }
    }
}

fn at(image: &ChatImage, error: OpError) -> ChatError {
    let message = format!("{}: {}", image.field, error.message);
    match error.category {
        trainyard_protocol::Category::User => ChatError::Invalid(message),
        _ => ChatError::Internal(message),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use trainyard_protocol::{BaseModel, Vision};
    use trainyard_wire::images::ImageLimits;

    use super::*;

    /// Token 90 stands for images, of which one takes a token per 32 × 32 pixels.
    fn rules(vision: bool) -> ImageRules {
        let preprocessor = r#"{"image_processor_type": "Qwen2VLImageProcessorFast", "patch_size": 16, "merge_size": 2,
            "temporal_patch_size": 2, "size": {"shortest_edge": 1024, "longest_edge": 1048576}}"#;
        let vision =
            vision.then(|| Vision { preprocessor: preprocessor.to_owned(), image_token: 90, placeholders: vec![90] });
        let model = BaseModel {
            name: "acme/eyes".to_owned(),
            arch: "qwen3_vl".to_owned(),
            max_context_length: 64,
            vocab_size: 100,
            parameters: 1,
            vision,
        };
        ImageRules::new(&model, ImageLimits::default())
    }

    /// Header of a PNG file of 64 × 32 pixels.
    const URL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAEAAAAAgCAAAAACH9iFY";

    #[test]
    fn placeholders_become_the_tokens_of_their_images() {
        let image = ChatImage::from_url("messages[0].content[0].image_url", URL).unwrap();
        let input = place(&[1, 90, 2, 90], &[image.clone(), image.clone()], &rules(true)).unwrap();
        assert_eq!(input.tokens, [1, 90, 90, 2, 90, 90]);
        let starts: Vec<_> = input.images.iter().map(|span| [span.start, span.tokens]).collect();
        assert_eq!(starts, [[1, 2], [4, 2]]);
        // Texts can't shift the places.
        let shifted = place(&[90, 90], std::slice::from_ref(&image), &rules(true)).unwrap_err().to_string();
        assert!(
            shifted.contains("has 1 images, but the model's chat template and the texts make 2 places"),
            "{shifted}"
        );
        let refused = check_model(&[image], &rules(false)).unwrap_err().to_string();
        assert_eq!(refused, "messages[0].content[0].image_url: model acme/eyes does not take images");
    }

    #[test]
    fn only_data_of_png_and_jpeg_is_read() {
        let refused = |url: &str| ChatImage::from_url("url", url).unwrap_err().to_string();
        assert!(refused("https://example.com/a.png").starts_with("url: \"https\" URLs are not supported, because"));
        assert!(refused("file:///etc/passwd").starts_with("url: \"file\" URLs are not supported"));
        assert!(refused("data:image/png,abc").starts_with("url: expected a data URI in base64"));
        assert_eq!(refused("data:image/gif;base64,AA=="), "url: expected image/png or image/jpeg, found \"image/gif\"");
        assert!(refused("data:image/png;base64,!").starts_with("url: the file is not valid base64"));
    }

    #[test]
    fn contents_with_images_are_lists() {
        assert_eq!(content(&[Piece::Text("a"), Piece::Text("b")]), Ordered::from("a\nb"));
        let shown = super::super::template::to_line(&content(&[Piece::Image, Piece::Text("a")])).unwrap();
        assert_eq!(shown, r#"[{"type": "image"}, {"type": "text", "text": "a"}]"#);
    }
}

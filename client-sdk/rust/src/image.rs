//! Images among the tokens of prompts and examples.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::Error;

/// First bytes of the formats that the service takes.
const SIGNATURES: [(&[u8], &str); 2] = [(b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpeg")];

/// A PNG or JPEG file that stands among tokens. The model decides how many positions it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub(crate) data: Vec<u8>,
    pub(crate) format: &'static str,
    pub(crate) expected_tokens: Option<i32>,
}

impl Image {
    /// Makes an image from the bytes of a file, whose first bytes determine its format.
    ///
    /// # Errors
    ///
    /// The bytes are not those of a PNG or JPEG file.
    pub fn new(data: impl Into<Vec<u8>>) -> Result<Self, Error> {
        let data = data.into();
        let format = SIGNATURES.iter().find(|(signature, _)| data.starts_with(signature)).map(|(_, name)| *name);
        let format = format.ok_or_else(|| Error::Value("image: expected a PNG or JPEG file".to_owned()))?;
        Ok(Self { data, format, expected_tokens: None })
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The file can't be read, or is not a PNG or JPEG file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let data = std::fs::read(path).map_err(|error| Error::Value(format!("{}: {error}", path.display())))?;
        Self::new(data)
    }

    /// Sets the number of positions that the image takes, if the caller knows it: the service refuses any other.
    #[must_use]
    pub fn expecting(mut self, tokens: i32) -> Self {
        self.expected_tokens = Some(tokens);
        self
    }
}

/// Images by the index of the token before which they stand; after the last token, its index plus one.
pub(crate) type PlacedImages = BTreeMap<usize, Vec<Image>>;

/// A run of tokens, or an image between two runs.
pub(crate) enum Piece<'a> {
    Tokens(&'a [i32]),
    Image(&'a Image),
}

/// Cuts an input at its images. There is at least one piece. Images beyond the end come last.
pub(crate) fn pieces<'a>(tokens: &'a [i32], images: &'a PlacedImages) -> Vec<Piece<'a>> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for (at, images) in images {
        let end = (*at).min(tokens.len());
        if end > start {
            pieces.push(Piece::Tokens(&tokens[start..end]));
            start = end;
        }
        pieces.extend(images.iter().map(Piece::Image));
    }
    if start < tokens.len() || pieces.is_empty() {
        pieces.push(Piece::Tokens(&tokens[start..]));
    }
    pieces
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn shown(tokens: &[i32], images: &[usize]) -> String {
        let image = Image::new(*b"\xff\xd8\xff").unwrap();
        let mut placed = PlacedImages::new();
        images.iter().for_each(|at| placed.entry(*at).or_default().push(image.clone()));
        let pieces = pieces(tokens, &placed);
        let shown = pieces.iter().map(|piece| match piece {
            Piece::Tokens(tokens) => format!("{tokens:?}"),
            Piece::Image(_) => "image".to_owned(),
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_input_is_cut_at_its_images() {
        assert_eq!(shown(&[1, 2, 3], &[]), "[1, 2, 3]");
        assert_eq!(shown(&[], &[]), "[]");
        assert_eq!(shown(&[1, 2, 3], &[1]), "[1] image [2, 3]");
        assert_eq!(shown(&[1, 2], &[0, 2, 2, 9]), "image [1, 2] image image image");
    }

    #[test]
    fn the_format_is_told_by_the_first_bytes() {
        assert_eq!(Image::new(*b"\x89PNG\r\n\x1a\n...").unwrap().format, "png");
        assert!(Image::new(*b"GIF89a").is_err());
    }
}

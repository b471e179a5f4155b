//! The two formats that clients may send.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ImageError;

/// Maximum number of characters of a client's text that an error repeats.
const SHOWN: usize = 32;

/// File format of an image, as a client names it (`png`, `jpeg`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Portable Network Graphics, one frame of at most 8 bits per channel.
    Png,
    /// JPEG with Huffman codes, sequential or progressive, grey or three channels.
    Jpeg,
}

impl FromStr for Format {
    type Err = ImageError;

    fn from_str(name: &str) -> Result<Self, ImageError> {
        match name {
            "png" => Ok(Self::Png),
            "jpeg" => Ok(Self::Jpeg),
            _ => Err(ImageError::UnknownFormat(name.chars().take(SHOWN).collect())),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
        })
    }
}

/// First bytes of file formats; `?` stands for any byte.
const SIGNATURES: &[(&[u8], &str)] = &[
    (PNG, "PNG"),
    (JPEG, "JPEG"),
    (b"GIF8", "GIF"),
    (b"RIFF????WEBP", "WebP"),
    (b"????ftypavif", "AVIF"),
    (b"????ftyphei", "HEIF"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
    (b"BM", "BMP"),
];
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const JPEG: &[u8] = b"\xff\xd8\xff";

/// Checks that a file starts with the signature of its format.
pub(crate) fn check(data: &[u8], format: Format) -> Result<(), ImageError> {
    let signature = match format {
        Format::Png => PNG,
        Format::Jpeg => JPEG,
    };
    if data.starts_with(signature) {
        return Ok(());
    }
    let matches = |signature: &[u8]| {
        data.len() >= signature.len()
            && signature.iter().zip(data).all(|(&wanted, &byte)| wanted == b'?' || wanted == byte)
    };
    let found = SIGNATURES.iter().find(|(signature, _)| matches(signature)).map(|(_, name)| *name);
    Err(ImageError::WrongFormat { expected: format, found })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn names_are_exact() {
        assert_eq!("png".parse::<Format>(), Ok(Format::Png));
        assert_eq!("jpeg".parse::<Format>(), Ok(Format::Jpeg));
        for name in ["jpg", "PNG", "webp", ""] {
            assert_eq!(name.parse::<Format>(), Err(ImageError::UnknownFormat(name.to_owned())));
        }
        let long = "x".repeat(1000).parse::<Format>().unwrap_err().to_string();
        assert_eq!(long, format!("unknown image format {:?}: expected png or jpeg", "x".repeat(32)));
    }

    #[test]
    fn the_signature_must_be_that_of_the_named_format() {
        assert_eq!(check(b"\x89PNG\r\n\x1a\nrest", Format::Png), Ok(()));
        assert_eq!(check(b"\xff\xd8\xff\xe0", Format::Jpeg), Ok(()));
        let message = |data: &[u8], format| check(data, format).unwrap_err().to_string();
        assert_eq!(message(b"\xff\xd8\xff\xe0", Format::Png), "expected a PNG file, found a JPEG file");
        assert_eq!(message(b"RIFF1234WEBPVP8 ", Format::Jpeg), "expected a JPEG file, found a WebP file");
        assert_eq!(message(b"\x89PNG\r\n", Format::Png), "expected a PNG file, found bytes of another format");
        assert_eq!(message(b"", Format::Jpeg), "expected a JPEG file, found bytes of another format");
    }
}

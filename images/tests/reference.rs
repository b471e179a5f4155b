//! Pixels of files of every kind, against those of PIL (`make.py`).

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::fs;
use std::path::Path;

use trainyard_images::{Format, ImageError, Limits, Size, decode, dimensions};

/// Calls `check` with the name and content of each file of a folder, and returns how many there are.
fn each_file(folder: &str, mut check: impl FnMut(&str, Format, &[u8])) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let format = match path.extension().unwrap().to_str().unwrap() {
            "png" if !name.ends_with(".expected.png") => Format::Png,
            "jpg" => Format::Jpeg,
            _ => continue,
        };
        check(name, format, &fs::read(&path).unwrap());
        count += 1;
    }
    count
}

fn expected(name: &str) -> Vec<u8> {
    let stem = name.rsplit_once('.').unwrap().0;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference").join(format!("{stem}.expected.png"));
    decode(&fs::read(path).unwrap(), Format::Png, &Limits::default()).unwrap().pixels().to_vec()
}

#[test]
fn pixels_are_those_of_pil() {
    let mut wrong = Vec::new();
    let count = each_file("reference", |name, format, data| match decode(data, format, &Limits::default()) {
        Err(error) => wrong.push(format!("{name}: {error}")),
        Ok(image) => {
            let expected = expected(name);
            let different = image.pixels().iter().zip(&expected).filter(|(a, b)| a != b).count();
            if different > 0 || image.pixels().len() != expected.len() {
                wrong.push(format!("{name}: {different} of {} values differ", expected.len()));
            }
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(count, 56);
}

#[test]
fn kinds_that_are_not_supported_are_refused_by_name() {
    let mut found = Vec::new();
    each_file("refused", |name, format, data| {
        found.push(format!("{name}: {}", decode(data, format, &Limits::default()).unwrap_err()));
    });
    found.sort();
    let wanted = [
        "animated.png: the PNG file is animated (3 frames): expected a still image",
        "arithmetic.jpg: arithmetic coding is not supported in JPEG images: expected Huffman codes",
        "cmyk.jpg: CMYK is not supported in JPEG images: convert the image to RGB",
        "grey16.png: a depth of 16 bits is not supported in PNG images: convert the image to 8 bits per channel",
        "missing_scans.jpg: the JPEG file is damaged: the last scans are missing",
        "no_palette.png: the PNG file is damaged: the palette is missing",
        "rgb16.png: a depth of 16 bits is not supported in PNG images: convert the image to 8 bits per channel",
    ];
    assert_eq!(found, wanted);
}

#[test]
fn the_header_has_the_size_of_the_pixels() {
    each_file("reference", |name, format, data| {
        let size = dimensions(data, format, &Limits::default()).unwrap();
        assert_eq!(size, decode(data, format, &Limits::default()).unwrap().size(), "{name}");
    });
}

/// EXIF orientation is ignored, as PIL does unless it is asked.
#[test]
fn a_rotated_image_stays_as_it_is_stored() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/exif_rotated.jpg");
    let size = dimensions(&fs::read(path).unwrap(), Format::Jpeg, &Limits::default()).unwrap();
    assert_eq!(size, Size::new(37, 29));
}

#[test]
fn every_limit_applies_before_decoding() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/sequential_420.jpg");
    let data = fs::read(path).unwrap();
    let (size, all) = (Size::new(37, 29), Limits::default());
    let refused = |limits| decode(&data, Format::Jpeg, &limits).unwrap_err();
    let bytes = data.len();
    assert_eq!(refused(Limits { bytes: 100, ..all }), ImageError::TooManyBytes { bytes, limit: 100 });
    assert_eq!(refused(Limits { side: 36, ..all }), ImageError::TooLong { size, limit: 36 });
    assert_eq!(refused(Limits { pixels: 1072, ..all }), ImageError::TooManyPixels { size, limit: 1072 });
    assert_eq!(refused(Limits { aspect_ratio: 1, ..all }), ImageError::TooNarrow { size, limit: 1 });
    assert!(decode(&data, Format::Jpeg, &Limits { bytes, side: 37, pixels: 1073, aspect_ratio: 2 }).is_ok());
    let wrong = decode(&data, Format::Png, &all).unwrap_err();
    assert_eq!(wrong, ImageError::WrongFormat { expected: Format::Png, found: Some("JPEG") });
}

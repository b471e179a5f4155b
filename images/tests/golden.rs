//! Patches of the reference images, against those of transformers 5.24 and torchvision 0.26.
//!
//! `golden/` contains the images and settings of the families' reference numbers, and their pixel values.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use trainyard_images::{Format, Limits, Patches, Preprocessor, decode, dimensions};

const FAMILIES: [&str; 3] = ["qwen3_vl", "qwen3_5_vl", "kimi_k25"];

fn folder(family: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(family)
}

fn preprocessor(family: &str) -> Preprocessor {
    Preprocessor::from_json(&fs::read_to_string(folder(family).join("preprocessor_config.json")).unwrap()).unwrap()
}

fn format(name: &str) -> Format {
    if name.ends_with("png") { Format::Png } else { Format::Jpeg }
}

fn patches(family: &str, name: &str) -> Patches {
    let image = decode(&fs::read(folder(family).join(name)).unwrap(), format(name), &Limits::default()).unwrap();
    preprocessor(family).patches(&image, image.size()).unwrap()
}

fn each_tensor(family: &str, mut check: impl FnMut(&str, &[usize], &[u8])) {
    let file = fs::read(folder(family).join("pixels.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&file).unwrap();
    assert_eq!(tensors.len(), 4);
    tensors.tensors().into_iter().for_each(|(name, tensor)| check(&name, tensor.shape(), tensor.data()));
}

/// The readme of the reference numbers allows two levels of 255; the values are equal to the bit.
#[test]
fn patches_are_those_of_the_reference() {
    for family in FAMILIES {
        each_tensor(family, |tensor, shape, data| {
            let Some(name) = tensor.strip_suffix(".pixel_values") else { return };
            let patches = patches(family, name);
            let wanted: Vec<f32> = data.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            let found = patches.values();
            assert_eq!([patches.layout().patches(), patches.layout().patch_dim()], [shape[0], wanted.len() / shape[0]]);
            let different = found.iter().zip(&wanted).filter(|(a, b)| a != b).count();
            let largest = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert_eq!(different, 0, "{family} {name}: {different} of {} differ, by at most {largest}", found.len());
        });
    }
}

#[test]
fn jpeg_pixels_are_those_of_the_reference() {
    for family in FAMILIES {
        each_tensor(family, |tensor, shape, data| {
            let Some(name) = tensor.strip_suffix(".rgb") else { return };
            let file = fs::read(folder(family).join(name)).unwrap();
            let image = decode(&file, Format::Jpeg, &Limits::default()).unwrap();
            assert_eq!([image.size().height as usize, image.size().width as usize], shape[..2]);
            assert!(image.pixels() == data, "{family}");
        });
    }
}

/// Grid and tokens as `golden.json` states them.
#[test]
fn tokens_follow_from_width_and_height() {
    let wanted = [
        ("qwen3_vl", [("a.png", [4, 6], 6), ("b.png", [6, 4], 6), ("c.jpg", [4, 8], 8)]),
        ("qwen3_5_vl", [("a.png", [4, 6], 6), ("b.png", [6, 4], 6), ("c.jpg", [4, 8], 8)]),
        ("kimi_k25", [("a.png", [4, 6], 6), ("b.png", [8, 6], 12), ("c.jpg", [6, 8], 12)]),
    ];
    for (family, images) in wanted {
        for (name, grid, tokens) in images {
            let file = fs::read(folder(family).join(name)).unwrap();
            let size = dimensions(&file, format(name), &Limits::default()).unwrap();
            let layout = preprocessor(family).layout(size).unwrap();
            assert_eq!([layout.grid_height(), layout.grid_width()], grid, "{family} {name}");
            assert_eq!(layout.tokens(), tokens, "{family} {name}");
        }
    }
}

/// A client may state a size; the image is then resized as if it had it.
#[test]
fn a_stated_size_replaces_that_of_the_file() {
    let file = fs::read(folder("qwen3_vl").join("a.png")).unwrap();
    let image = decode(&file, Format::Png, &Limits::default()).unwrap();
    let preprocessor = preprocessor("qwen3_vl");
    let stated = trainyard_images::Size::new(64, 40);
    let patches = preprocessor.patches(&image, stated).unwrap();
    assert_eq!(patches.layout(), &preprocessor.layout(stated).unwrap());
    assert_eq!(patches.layout().tokens(), 8);
    assert_ne!(patches.values(), preprocessor.patches(&image, image.size()).unwrap().values());
}

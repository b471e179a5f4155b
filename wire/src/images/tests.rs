#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use trainyard_images::Format;

use super::digest::digest;
use super::testing::{model, png, rules};
use super::*;

fn sent(data: &[u8]) -> SentImage<'_> {
    SentImage { data, format: "png", expected_tokens: None, override_dimensions: None }
}

/// Appends one image to a prompt of three tokens.
fn appended(rules: &ImageRules, image: SentImage<'_>) -> Result<InputTokens, String> {
    let mut input = InputTokens { tokens: vec![1, 2, 3], images: Vec::new() };
    RequestImages::new(rules).append(&mut input, image).map(|()| input).map_err(|error| error.message)
}

#[test]
fn an_image_takes_the_tokens_of_its_size() {
    let rules = rules(ImageLimits::default());
    let input = appended(&rules, sent(&png(96, 64))).unwrap();
    assert_eq!(input.tokens, [1, 2, 3, 90, 90, 90, 90, 90, 90]);
    let span = &input.images[0];
    assert_eq!((span.start, span.tokens, span.image.counted), (3, 6, Size::new(96, 64)));
    assert_eq!(*span.image.data, png(96, 64));
    let file = png(96, 64);
    let counted = SentImage { override_dimensions: Some(Size::new(32, 64)), ..sent(&file) };
    assert_eq!(appended(&rules, counted).unwrap().images[0].tokens, 2);
}

#[test]
fn another_number_of_tokens_is_refused_with_both_and_the_size() {
    let rules = rules(ImageLimits::default());
    let expecting = |tokens| appended(&rules, SentImage { expected_tokens: Some(tokens), ..sent(&png(96, 64)) });
    assert_eq!(expecting(6).unwrap().tokens.len(), 9);
    for wrong in [5, 0, -6] {
        let text = format!("expected_tokens is {wrong}, but an image of 96 × 64 pixels takes 6 tokens");
        assert_eq!(expecting(wrong).unwrap_err(), text);
    }
}

#[test]
fn models_without_a_tower_refuse_images() {
    let text = "model acme/eyes does not take images";
    let rules = ImageRules::new(&model(false), ImageLimits::default());
    assert_eq!(appended(&rules, sent(&png(96, 64))).unwrap_err(), text);
    assert_eq!(rules.check_tokens(&[90, 91], &[]), Ok(()));
}

#[test]
fn limits_are_named_with_their_numbers() {
    let narrow = Limits { bytes: 40, pixels: 10_000, ..Limits::default() };
    let rules = |change: &dyn Fn(&mut ImageLimits)| {
        let mut limits = ImageLimits { image: narrow, ..ImageLimits::default() };
        change(&mut limits);
        super::testing::rules(limits)
    };
    let unchanged = rules(&|_| ());
    let refused = |image: SentImage<'_>| appended(&unchanged, image).unwrap_err();
    assert_eq!(refused(sent(&[png(9, 9), vec![0; 9]].concat())), "the image file has 42 bytes, above the limit of 40");
    assert_eq!(refused(sent(&png(101, 100))), "the image has 101 × 100 = 10100 pixels, above the limit of 10000");
    let data = png(32, 32);
    let large = SentImage { override_dimensions: Some(Size::new(101, 100)), ..sent(&data) };
    assert_eq!(refused(large), "override_dimensions: the image has 101 × 100 = 10100 pixels, above the limit of 10000");
    assert_eq!(
        refused(SentImage { format: "gif", ..sent(&data) }),
        "unknown image format \"gif\": expected png or jpeg"
    );
    assert_eq!(refused(SentImage { format: "jpeg", ..sent(&data) }), "expected a JPEG file, found a PNG file");
    let fits = appended(&super::testing::rules(ImageLimits::default()), sent(&png(992, 64))).unwrap_err();
    assert_eq!(fits, "3 tokens and the image's 62 exceed the model's context window of 64");
}

#[test]
fn images_of_a_request_are_counted_and_different_ones_once() {
    let rules = rules(ImageLimits { images: 3, pixels: 5_000, ..ImageLimits::default() });
    let mut images = RequestImages::new(&rules);
    let mut input = InputTokens::default();
    for _ in 0..2 {
        images.append(&mut input, sent(&png(64, 32))).unwrap();
    }
    assert_eq!(images.cost(), ImageCost { images: 2, pixels: 64 * 32 });
    assert_eq!(file_pixels(&input.images), 64 * 32);
    assert!(Arc::ptr_eq(&input.images[0].image.data, &input.images[1].image.data));
    let text = images.append(&mut input, sent(&png(64, 64))).unwrap_err().message;
    assert_eq!(text, "the images of the request have 6144 pixels up to this one, above the limit of 5000");
    images.append(&mut input, sent(&png(32, 32))).unwrap();
    let text = images.append(&mut input, sent(&png(32, 32))).unwrap_err().message;
    assert_eq!(text, "the request has more than 3 images");
    assert_eq!(images.cost(), ImageCost { images: 3, pixels: 64 * 32 + 32 * 32 });
}

/// A small file may become a large image.
#[test]
fn pixels_after_resizing_count_where_they_are_more() {
    let rules = rules(ImageLimits::default());
    let mut images = RequestImages::new(&rules);
    images.append(&mut InputTokens::default(), sent(&png(1, 1))).unwrap();
    assert_eq!(images.cost().pixels, 32 * 32);
}

#[test]
fn all_that_decides_the_patches_is_in_the_digest() {
    let vision = model(true).vision.unwrap();
    let size = Size::new(3, 4);
    let base = digest(&vision, Format::Png, size, b"file");
    assert_eq!(digest(&vision, Format::Png, size, b"file"), base);
    let other = Vision { preprocessor: format!("{} ", vision.preprocessor), ..vision.clone() };
    for different in [
        digest(&other, Format::Png, size, b"file"),
        digest(&vision, Format::Jpeg, size, b"file"),
        digest(&vision, Format::Png, Size::new(4, 3), b"file"),
        digest(&vision, Format::Png, size, b"fild"),
    ] {
        assert_ne!(different, base);
    }
}

#[test]
fn tokens_that_stand_for_images_are_refused_outside_of_images() {
    let rules = rules(ImageLimits::default());
    let mut input = InputTokens { tokens: vec![1], images: Vec::new() };
    let mut images = RequestImages::new(&rules);
    images.append(&mut input, sent(&png(64, 32))).unwrap();
    input.tokens.push(5);
    assert_eq!(rules.check_tokens(&input.tokens, &input.images), Ok(()));
    input.tokens.push(91);
    let text = "token 4 is 91, which stands for images in model acme/eyes: send an image chunk instead";
    assert_eq!(rules.check_tokens(&input.tokens, &input.images), Err(text.to_owned()));
    assert!(rules.check_tokens(&[1, 90], &[]).unwrap_err().starts_with("token 1 is 90, which stands for images"));
}

#[test]
fn settings_that_cannot_be_read_are_not_the_clients_fault() {
    let mut model = model(true);
    model.vision.as_mut().unwrap().preprocessor = "{}".to_owned();
    let rules = ImageRules::new(&model, ImageLimits::default());
    let error = RequestImages::new(&rules).append(&mut InputTokens::default(), sent(&png(32, 32))).unwrap_err();
    assert_eq!(error.category, trainyard_protocol::Category::Server);
}

//! Files that an attacker could send: none panics, and none costs more than its size and the limits allow.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use trainyard_images::{Format, ImageError, Limits, Size, decode, dimensions};
use trainyard_test_support::heap;
use trainyard_test_support::mutate::Corpus;

const CORPORA: [(&str, Format); 2] = [("images_png", Format::Png), ("images_jpeg", Format::Jpeg)];

/// Limits under which a mutated header cannot make a test slow.
const SMALL: Limits = Limits { bytes: 1 << 20, pixels: 1 << 18, side: 4096, aspect_ratio: 200 };

fn each_file(mut check: impl FnMut(&str, Format, Vec<u8>)) {
    for (corpus, format) in CORPORA {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz").join(corpus);
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            check(path.file_name().unwrap().to_str().unwrap(), format, fs::read(&path).unwrap());
        }
    }
}

#[test]
fn files_that_end_anywhere_are_refused_or_whole() {
    each_file(|name, format, data| {
        let whole = decode(&data, format, &SMALL);
        for length in 0..data.len() {
            // Only the end of the file, which has no pixels, may be missing.
            if let Ok(part) = decode(&data[..length], format, &SMALL) {
                assert!(whole.as_ref() == Ok(&part), "{name} ends after {length} bytes");
            }
        }
    });
}

#[test]
fn flipped_bits_never_panic() {
    each_file(|_, format, data| {
        for at in 0..data.len() {
            for bit in [0, 3, 7] {
                let mut flipped = data.clone();
                flipped[at] ^= 1 << bit;
                let _ = decode(&flipped, format, &SMALL);
            }
        }
    });
}

#[test]
fn mutated_png_files_never_panic_and_hold_no_more_than_the_limits_allow() {
    each_mutation("images_png", Format::Png);
}

#[test]
fn mutated_jpeg_files_never_panic_and_hold_no_more_than_the_limits_allow() {
    each_mutation("images_jpeg", Format::Jpeg);
}

fn each_mutation(corpus: &'static str, format: Format) {
    Corpus::new(corpus).words(&["IDAT", "PLTE", "acTL", "\u{ff}", "\0\0\0\r"]).each(|data| {
        let (result, held) = heap::peak(|| decode(data, format, &SMALL));
        let pixels = dimensions(data, format, &SMALL).map_or(0, Size::pixels) as usize;
        assert!(held < 2 * data.len() + 24 * pixels + (3 << 20), "{held} bytes for {pixels} pixels");
        if let Ok(image) = result {
            assert_eq!(image.pixels().len() as u64, image.size().pixels() * 3);
        }
    });
}

/// Mutations of the pixels' data and of headers, which a wrong checksum would hide.
#[test]
fn mutated_png_files_with_valid_checksums_never_panic() {
    let mut decoded = 0;
    Corpus::new("images_png").words(&["IDAT", "PLTE", "tRNS", "\0\0\0\r"]).each(|data| {
        let mut data = data.to_vec();
        repair(&mut data);
        let (result, held) = heap::peak(|| decode(&data, Format::Png, &SMALL));
        let pixels = dimensions(&data, Format::Png, &SMALL).map_or(0, Size::pixels) as usize;
        assert!(held < 2 * data.len() + 24 * pixels + (3 << 20), "{held} bytes for {pixels} pixels");
        decoded += usize::from(result.is_ok());
    });
    assert!(decoded > 30, "only {decoded} mutations are decoded");
}

/// Writes the checksum of every chunk.
fn repair(data: &mut [u8]) {
    let mut at = 8;
    while let Some(length) = data.get(at..at + 4).map(|bytes| u32::from_be_bytes(bytes.try_into().unwrap()) as usize) {
        let end = at + 8 + length;
        if end + 4 > data.len() {
            return;
        }
        let sum = checksum(&data[at + 4..end]);
        data[end..end + 4].copy_from_slice(&sum.to_be_bytes());
        at = end + 4;
    }
}

/// Texts and profiles of any length cost no memory.
#[test]
fn large_chunks_beside_the_pixels_are_skipped() {
    let data = png_header(19, 13);
    let wanted = decode(&data, Format::Png, &Limits::default()).unwrap();
    for name in [b"tEXt", b"zTXt", b"iCCP", b"teSt"] {
        let mut chunk = (2_u32 << 20).to_be_bytes().to_vec();
        chunk.extend(name);
        chunk.resize(8 + (2 << 20) + 4, b'x');
        let mut longer = data.clone();
        longer.splice(33..33, chunk);
        repair(&mut longer);
        let (image, held) = heap::peak(|| decode(&longer, Format::Png, &Limits::default()));
        assert_eq!(image.as_ref(), Ok(&wanted), "{}", String::from_utf8_lossy(name));
        assert!(held < 1 << 20, "{held} bytes");
    }
}

fn png_header(width: u32, height: u32) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/images_png/rgb8");
    let mut data = fs::read(path).unwrap();
    data[16..20].copy_from_slice(&width.to_be_bytes());
    data[20..24].copy_from_slice(&height.to_be_bytes());
    // The checksum of the header, so that only its size is wrong.
    let sum = checksum(&data[12..29]);
    data[29..33].copy_from_slice(&sum.to_be_bytes());
    data
}

/// CRC-32 as PNG files have it.
fn checksum(data: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 };
    !data.iter().fold(!0, |crc: u32, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

fn jpeg_header(width: u16, height: u16) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/images_jpeg/sequential_420");
    let mut data = fs::read(path).unwrap();
    let at = data.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    data[at + 5..at + 7].copy_from_slice(&height.to_be_bytes());
    data[at + 7..at + 9].copy_from_slice(&width.to_be_bytes());
    data
}

/// A gigapixel in a file of a few kilobytes.
#[test]
fn a_bomb_costs_neither_memory_nor_time() {
    let bombs = [
        (png_header(32_768, 32_768), Format::Png),
        (png_header(u32::MAX, u32::MAX), Format::Png),
        (jpeg_header(32_768, 32_768), Format::Jpeg),
    ];
    for (data, format) in bombs {
        let began = Instant::now();
        let (result, held) = heap::peak(|| decode(&data, format, &Limits::default()));
        assert!(matches!(result, Err(ImageError::TooLong { limit: 16_384, .. })), "{result:?}");
        assert!(held < 4096 && began.elapsed() < Duration::from_millis(50), "{held} bytes, {:?}", began.elapsed());
    }
}

/// Pixels within the limits, but more than the file's bytes can stand for.
#[test]
fn a_size_that_the_file_cannot_fill_is_refused_before_allocating() {
    for (data, format) in [(png_header(5000, 5000), Format::Png), (jpeg_header(5000, 5000), Format::Jpeg)] {
        let (result, held) = heap::peak(|| decode(&data, format, &Limits::default()));
        assert_eq!(result, Err(ImageError::Truncated(format)));
        assert!(held < 1 << 20, "{held} bytes");
    }
}

/// The number that `Limits` documents.
#[test]
fn decoding_holds_at_most_the_stated_bytes_per_pixel() {
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/large")).unwrap() {
        let path = entry.unwrap().path();
        let format = if path.extension().unwrap() == "png" { Format::Png } else { Format::Jpeg };
        let data = fs::read(&path).unwrap();
        let (image, held) = heap::peak(|| decode(&data, format, &Limits::default()).unwrap());
        let per_pixel = held as f64 / image.size().pixels() as f64;
        assert!(per_pixel <= 8.5, "{}: {per_pixel} bytes per pixel", path.display());
    }
}

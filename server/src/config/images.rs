//! Images of requests: flags, the table `[images]` of the file, and the defaults.

use std::num::NonZeroU64;

use clap::Args;
use serde::Deserialize;
use trainyard_images::{DECODING_BYTES_PER_PIXEL, Limits};
use trainyard_wire::images::ImageLimits;

use super::{ConfigError, size};
use crate::budgets::{IMAGE_CACHE, IMAGE_MEMORY};

/// Default number of threads that decode images.
const THREADS: usize = 2;

/// Flags of the limits on images.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Images")]
pub struct ImageFlags {
    /// Threads of a worker that decode images [default: 2].
    #[arg(long, env = "TRAINYARD_IMAGE_THREADS", value_name = "N")]
    pub image_threads: Option<usize>,
    /// Memory for images that are being decoded, and the same amount again for decoded ones until their requests end.
    /// An image with more pixels than a ninth of this number of bytes is refused [default: 512MiB].
    #[arg(long, env = "TRAINYARD_IMAGE_MEMORY_MIB", value_name = "SIZE", value_parser = size::mebibytes::<u64>)]
    pub image_memory_mib: Option<u64>,
    /// Memory for cached embeddings of images, on each rank; 0 disables the cache [default: 256MiB].
    #[arg(long, env = "TRAINYARD_IMAGE_CACHE_MIB", value_name = "SIZE", value_parser = size::mebibytes::<u64>)]
    pub image_cache_mib: Option<u64>,
    /// Largest file of an image [default: 32MiB].
    #[arg(long, env = "TRAINYARD_MAX_IMAGE_BYTES", value_name = "SIZE", value_parser = size::bytes::<usize>)]
    pub max_image_bytes: Option<usize>,
    /// Maximum number of pixels of an image [default: 33554432].
    #[arg(long, env = "TRAINYARD_MAX_IMAGE_PIXELS", value_name = "N")]
    pub max_image_pixels: Option<u64>,
    /// Maximum number of images of a request [default: 1024].
    #[arg(long, env = "TRAINYARD_MAX_IMAGES", value_name = "N")]
    pub max_images: Option<usize>,
    /// Maximum number of pixels of the different images of a request [default: 268435456].
    #[arg(long, env = "TRAINYARD_MAX_REQUEST_PIXELS", value_name = "N")]
    pub max_request_pixels: Option<u64>,
    /// Pixels of images that each tenant without a limit of its own may send to this process per minute; further
    /// requests get 429 [default: unlimited].
    #[arg(long, env = "TRAINYARD_PIXELS_PER_MINUTE", value_name = "N")]
    pub pixels_per_minute: Option<u64>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileImages {
    threads: Option<usize>,
    #[serde(deserialize_with = "size::mebibytes_of_file")]
    memory_mib: Option<u64>,
    #[serde(deserialize_with = "size::mebibytes_of_file")]
    cache_mib: Option<u64>,
    #[serde(deserialize_with = "size::bytes_of_file")]
    max_bytes: Option<usize>,
    max_pixels: Option<u64>,
    max_images: Option<usize>,
    max_request_pixels: Option<u64>,
    pixels_per_minute: Option<u64>,
}

/// Limits on images, and what decoding may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Images {
    /// Threads of a worker that decode images.
    pub threads: usize,
    /// Bytes of images that are being decoded.
    pub memory: u64,
    /// Bytes of cached embeddings, on each rank.
    pub cache: usize,
    /// Limits on the images of a request.
    pub limits: ImageLimits,
    /// Pixels that each tenant may send per minute; unlimited when `None`.
    pub pixels_per_minute: Option<NonZeroU64>,
}

impl Images {
    pub(super) fn resolve(flags: ImageFlags, file: FileImages) -> Result<Self, ConfigError> {
        let defaults = ImageLimits::default();
        let threads = flags.image_threads.or(file.threads).unwrap_or(THREADS);
        let memory_mib = flags.image_memory_mib.or(file.memory_mib).unwrap_or(IMAGE_MEMORY >> 20);
        let cache_mib = flags.image_cache_mib.or(file.cache_mib).unwrap_or(IMAGE_CACHE >> 20);
        let bytes = flags.max_image_bytes.or(file.max_bytes).unwrap_or(defaults.image.bytes);
        let pixels = flags.max_image_pixels.or(file.max_pixels).unwrap_or(defaults.image.pixels);
        let images = flags.max_images.or(file.max_images).unwrap_or(defaults.images);
        let per_minute = flags.pixels_per_minute.or(file.pixels_per_minute);
        let request_pixels = flags.max_request_pixels.or(file.max_request_pixels).unwrap_or(defaults.pixels);
        for (name, zero) in [
            ("image-threads", threads == 0),
            ("image-memory-mib", memory_mib == 0),
            ("max-image-bytes", bytes == 0),
            ("max-image-pixels", pixels == 0),
            ("max-images", images == 0),
            ("max-request-pixels", request_pixels == 0),
            ("pixels-per-minute", per_minute == Some(0)),
        ] {
            if zero {
                return Err(ConfigError::Zero(name));
            }
        }
        let memory = memory_mib.saturating_mul(1 << 20);
        let image = Limits { bytes, pixels: pixels.min(memory / DECODING_BYTES_PER_PIXEL), ..defaults.image };
        Ok(Self {
            threads,
            memory,
            cache: usize::try_from(cache_mib.saturating_mul(1 << 20)).unwrap_or(usize::MAX),
            limits: ImageLimits { image, images, pixels: request_pixels },
            pixels_per_minute: per_minute.and_then(NonZeroU64::new),
        })
    }
}

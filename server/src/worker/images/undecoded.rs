//! Requests whose images are being decoded.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::task::spawn_blocking;
use trainyard_images::Preprocessor;
use trainyard_protocol::{
    DecodedImages, Image, ImageSpan, OpError, Prepare, PreparedContent, RawBatch, RequestId, Sample, TenantShare,
};
use trainyard_scheduler::Work;

use super::pool::{ImagePool, Undecodable};

/// A request that can't start before its images are decoded.
pub(in crate::worker) struct Undecoded {
    pub(in crate::worker) work: Work,
    pub(in crate::worker) preprocessor: Arc<Preprocessor>,
    pub(in crate::worker) content: UndecodedContent,
}

impl Undecoded {
    /// Returns the pixels of all different images after resizing.
    pub(super) fn pixels(&self) -> u64 {
        let mut different = BTreeSet::new();
        let images = self.content.inputs().into_iter().flatten().map(|span| &span.image);
        images
            .filter(|image| different.insert(image.digest))
            .filter_map(|image| self.preprocessor.layout(image.counted).ok())
            .map(|layout| layout.resized().pixels())
            .fold(0, u64::saturating_add)
    }
}

/// Content of a request, without its decoded images.
pub(in crate::worker) enum UndecodedContent {
    Batch { base_model: String, batch: RawBatch },
    Sample(Box<Sample>),
}

/// Outcome of decoding the images of a request.
pub(in crate::worker) struct DecodedRequest {
    pub(in crate::worker) request: RequestId,
    pub(in crate::worker) content: Result<PreparedContent, OpError>,
}

impl UndecodedContent {
    fn inputs(&self) -> Vec<&[ImageSpan]> {
        match self {
            Self::Batch { batch, .. } => batch.data.iter().map(|datum| &*datum.images).collect(),
            Self::Sample(sample) => vec![&*sample.images],
        }
    }

    /// Decodes the images, and checks examples with them.
    ///
    /// # Errors
    /// The user's, which names the input and the image.
    pub(in crate::worker) async fn decoded(
        self,
        pool: Arc<ImagePool>,
        share: TenantShare,
        preprocessor: Arc<Preprocessor>,
        preparer: Arc<dyn Prepare>,
    ) -> Result<PreparedContent, OpError> {
        let images: Vec<Image> = self.inputs().into_iter().flatten().map(|span| span.image.clone()).collect();
        let decoding = pool.decode(&share, &preprocessor, &images);
        drop(images);
        let decoded = decoding.await.map_err(|found| self.named(found))?;
        match self {
            Self::Batch { base_model, batch } => {
                let batch = RawBatch { decoded, ..batch };
                let prepared = spawn_blocking(move || preparer.prepare(&base_model, batch)).await;
                prepared
                    .map(PreparedContent::Batch)
                    .map_err(|_| OpError::server("internal error; the server's log has the details"))
            }
            Self::Sample(sample) => Ok(PreparedContent::Sample { sample, images: decoded }),
        }
    }

    /// Names input and position in the error of an image.
    fn named(&self, found: Undecodable) -> OpError {
        let Undecodable { digest, error } = found;
        for (index, spans) in self.inputs().into_iter().enumerate() {
            if let Some(span) = spans.iter().find(|span| span.image.digest == digest) {
                let input = match self {
                    Self::Batch { .. } => format!("data[{index}].model_input"),
                    Self::Sample(_) => "prompt".to_owned(),
                };
                let message = format!("{input}: the image at token {}: {}", span.start, error.message);
                return OpError { message, ..error };
            }
        }
        error
    }
}

/// Returns whether all images of an input are decoded.
pub(in crate::worker) fn are_decoded(spans: &[ImageSpan], decoded: &DecodedImages) -> bool {
    spans.iter().all(|span| decoded.contains_key(&span.image.digest))
}

//! Images and requests with them, for tests.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use serde_json::json;
use trainyard_images::{Format, Preprocessor, Size};
use trainyard_protocol::{Image, ImageDigest, ImageSpan, RequestId, SamplingSessionId, SessionId, TenantId};
use trainyard_scheduler::{Decoded, RequestKind, SamplingSession, Timestamp, Work};
use trainyard_wire::payload::Payload;

use super::undecoded::{Undecoded, UndecodedContent};
use crate::engine::testing::model_with_images;

/// A PNG file of one colour whose digest is made of `id`.
pub(crate) fn image(id: u8, size: Size) -> Image {
    let data = png(size);
    Image { format: Format::Png, data: data.into(), counted: size, digest: ImageDigest([id; 32]) }
}

/// Writes a grey PNG file with stored deflate blocks.
pub(crate) fn png(size: Size) -> Vec<u8> {
    let chunk = |name: &[u8; 4], content: &[u8]| {
        let mut body = name.to_vec();
        body.extend(content);
        let mut chunk = (content.len() as u32).to_be_bytes().to_vec();
        chunk.extend(&body);
        chunk.extend(crc32(&body).to_be_bytes());
        chunk
    };
    let mut header = Vec::new();
    header.extend(size.width.to_be_bytes());
    header.extend(size.height.to_be_bytes());
    header.extend([8, 0, 0, 0, 0]);
    let rows = vec![0_u8; (size.width as usize + 1) * size.height as usize];
    let mut stream = vec![0x78, 1];
    let mut blocks = rows.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        let length = block.len() as u16;
        stream.push(u8::from(blocks.peek().is_none()));
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend(block);
    }
    // Adler-32 of zeros.
    let adler = (rows.len() as u32 % 65_521) << 16 | 1;
    stream.extend(adler.to_be_bytes());
    [b"\x89PNG\r\n\x1a\n".to_vec(), chunk(b"IHDR", &header), chunk(b"IDAT", &stream), chunk(b"IEND", &[])].concat()
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
    })
}

/// A sample with these images, which take a token per 32 × 32 pixels.
pub(crate) fn undecoded(request: &str, images: Vec<Image>) -> Undecoded {
    let work = sample_of_images(request, images);
    let Ok(Payload::Sample { sample, .. }) = Payload::decode(&work.payload) else { unreachable!("it is a sample") };
    let vision = model_with_images().vision.unwrap();
    let preprocessor = Arc::new(Preprocessor::from_json(&vision.preprocessor).unwrap());
    Undecoded { work, preprocessor, content: UndecodedContent::Sample(sample) }
}

/// A sample of the base model whose prompt is a token and these images.
pub(crate) fn sample_of_images(request: &str, images: Vec<Image>) -> Work {
    let mut prompt = vec![1];
    let mut spans = Vec::new();
    for image in images {
        let tokens = (image.counted.pixels() / 1024) as usize;
        spans.push(ImageSpan { start: prompt.len(), tokens, image });
        prompt.resize(prompt.len() + tokens, 90);
    }
    let sample = json!({
        "prompt": prompt, "images": spans, "num_samples": 1, "max_tokens": 1, "seed": 1, "stop": "Nothing",
        "temperature": 1.0, "top_k": null, "top_p": 1.0, "prompt_logprobs": false, "prompt_logprobs_last_n": null,
        "topk_prompt_logprobs": 0, "topk_sample_logprobs": 0, "target_prompt_logprobs": null, "prompt_alt_tokens_k": 0,
    });
    let payload = Payload::Sample { sample: Box::new(serde_json::from_value(sample).unwrap()), server_seed: false };
    let session = SamplingSession {
        id: SamplingSessionId::new("s:sample:0"),
        session: SessionId::new("s"),
        seq_id: 0,
        base_model: model_with_images().name,
        model_path: None,
        checkpoint_dir: None,
        snapshot: None,
        snapshot_dir: None,
        collected: false,
        created_at: Timestamp(0),
        stores: None,
    };
    Work {
        request: RequestId::new(request),
        tenant: TenantId::new("t"),
        run: None,
        sampling_session: Some(session),
        base_model: String::new(),
        kind: RequestKind::Sample,
        seq_id: 0,
        payload: payload.encode().unwrap(),
        decoded: Decoded::default(),
        replay: false,
    }
}

//! Images of requests: counted, refused and stored at submission.

use std::num::NonZeroU64;

use serde_json::{Value, json};
use trainyard_images::Size;
use trainyard_protocol::PreparedContent;
use trainyard_scheduler::{RequestKind, TenantPolicy};
use trainyard_wire::images::ImageLimits;
use trainyard_wire::payload::Payload;
use trainyard_wire::training;

use super::testing::*;
use crate::state::Limits;

/// Header of a PNG file of 64 × 32 pixels, which takes two tokens.
const FILE: &str = "iVBORw0KGgoAAAANSUhEUgAAAEAAAAAgCAAAAACH9iFY";

fn image(expected_tokens: Value) -> Value {
    json!({"type": "image", "data": FILE, "format": "png", "expected_tokens": expected_tokens})
}

fn with_prompt(sampler: &str, seq_id: i64, chunks: Value) -> Value {
    let mut body = sample(sampler, seq_id);
    body["prompt"] = json!({"chunks": chunks});
    body
}

fn pass(run: &str, seq_id: i64, image: Value) -> Value {
    let input = json!({"chunks": [{"type": "encoded_text", "tokens": [1]}, image]});
    let targets = json!({"data": [0, 0, 2], "shape": [3], "dtype": "int64"});
    let datum = json!({"model_input": input, "loss_fn_inputs": {"target_tokens": targets}});
    let pass = json!({"data": [datum], "loss_fn": "cross_entropy"});
    json!({"model_id": run, "seq_id": seq_id, "forward_backward_input": pass})
}

#[tokio::test]
async fn a_sample_with_an_image_is_stored_with_it() {
    let server = Server::with_images(Limits::default()).await;
    let sampler = server.sampler().await;
    let chunks = json!([{"tokens": [1]}, image(json!(2)), {"tokens": [5]}]);
    server.post("asample", with_prompt(&sampler, 0, chunks)).await.json();
    let work = server.next_work().await;
    let Payload::Sample { sample, .. } = Payload::decode(&work.payload).unwrap() else { unreachable!() };
    assert_eq!(sample.prompt, [1, 90, 90, 5]);
    let span = &sample.images[0];
    assert_eq!((span.start, span.tokens, span.image.counted), (1, 2, Size::new(64, 32)));
    let Some(PreparedContent::Sample { images, .. }) = work.decoded.take() else { unreachable!() };
    assert!(images.is_empty(), "the worker decodes them");
}

#[tokio::test]
async fn refused_images_are_named() {
    let limits = Limits { images: ImageLimits { images: 2, ..ImageLimits::default() }, ..Limits::default() };
    let server = Server::with_images(limits).await;
    let sampler = server.sampler().await;
    for (chunks, text) in [
        (
            json!([image(json!(3))]),
            "prompt.chunks[0]: expected_tokens is 3, but an image of 64 × 32 pixels takes 2 tokens",
        ),
        (json!([image(json!(null)), image(json!(null)), image(json!(null))]), "the request has more than 2 images"),
        (json!([{"tokens": [1, 91]}]), "prompt: token 1 is 91, which stands for images in model acme/tiny"),
        (
            json!([{"type": "image_asset_pointer", "location": "http://x", "format": "png"}]),
            "prompt.chunks[0]: image_asset_pointer chunks are not supported, because the server fetches no files",
        ),
        (json!([{"type": "dmel", "dmel": ""}]), "prompt.chunks[0]: dmel chunks are not supported"),
    ] {
        let refused = server.post("asample", with_prompt(&sampler, 0, chunks)).await.refused(400);
        assert!(refused.contains(text), "{refused}");
    }
}

#[tokio::test]
async fn examples_with_images_are_left_to_the_worker() {
    let server = Server::with_images(Limits::default()).await;
    let run = server.run().await;
    server.post("forward_backward", pass(&run, 1, image(json!(2)))).await.json();
    let work = server.next_work().await;
    assert_eq!((work.kind, work.decoded.take()), (RequestKind::ForwardBackward, None));
    let rules = server.state.image_rules(MODEL);
    let batch = training::stored_batch(work.payload.clone(), &rules).unwrap();
    assert_eq!(batch.data[0].tokens, [1, 90, 90]);
    assert_eq!(batch.data[0].images.len(), 1);
}

/// A wrong request takes its position in the run's order, and its future says what is wrong.
#[tokio::test]
async fn a_pass_with_a_refused_image_fails_in_its_turn() {
    for (server, tokens, text) in [
        (
            Server::with_images(Limits::default()).await,
            3,
            "data[0].model_input.chunks[1]: expected_tokens is 3, but an image of 64 × 32 pixels takes 2 tokens",
        ),
        (Server::start().await, 2, "data[0].model_input.chunks[1]: model acme/tiny does not take images"),
    ] {
        let run = server.run().await;
        server.post("forward_backward", pass(&run, 1, image(json!(tokens)))).await.json();
        let work = server.next_work().await;
        let Some(PreparedContent::Batch(Err(error))) = work.decoded.take() else { unreachable!() };
        assert_eq!(error.message, text);
        assert_eq!(training::stored_batch(work.payload.clone(), &server.state.image_rules(MODEL)).unwrap_err(), error);
    }
}

#[tokio::test]
async fn pixels_per_minute_are_refused_with_both_numbers() {
    let policy = TenantPolicy { pixels_per_minute: NonZeroU64::new(3_000), ..TenantPolicy::default() };
    let server = Server::granted_with_images(policy).await;
    let sampler = server.sampler().await;
    // The same image twice is decoded once.
    let chunks = json!([image(json!(null)), image(json!(null))]);
    server.post("asample", with_prompt(&sampler, 0, chunks.clone())).await.json();
    let refused = server.post("asample", with_prompt(&sampler, 1, chunks.clone())).await;
    assert_eq!(
        refused.refused(429),
        "the images of this request have 2048 pixels, and 952 of 3000 pixels per minute are left; try again"
    );
    assert_eq!(refused.headers["retry-after"], "22");
    server.post("asample", sample(&sampler, 2)).await.json();
    server.clock.advance(22);
    server.post("asample", with_prompt(&sampler, 1, chunks)).await.json();
}

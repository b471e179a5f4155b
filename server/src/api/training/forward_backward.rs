//! `POST forward_backward`.

use axum::extract::State;
use bytes::Bytes;
use trainyard_protocol::limits::{custom_loss_tokens, scored_tokens};
use trainyard_protocol::{CustomLossId, Datum, OpError, PreparedContent, RawBatch, RunId, TenantId};
use trainyard_scheduler::{Decoded, Error, RequestKind, Run};
use trainyard_wire::custom_loss;
use trainyard_wire::futures::SubmitResponse;
use trainyard_wire::proto::ForwardBackwardRequest;
use trainyard_wire::training::{self, ForwardBackwardBody};
use trainyard_wire::{json, provenance};

use crate::api::request::body::{Media, RawBody, beside};
use crate::api::request::recorded;
use crate::api::request::refusals::{Binary, Refusals};
use crate::api::request::respond::Reply;
use crate::api::request::submit::{self, NewRequest};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

/// Computes a loss and adds its gradient to the run's, unless `forward_only`. The body is the protobuf
/// message `ForwardBackwardRequest` (see `tinker_public.proto`), plain or compressed with zstd, or JSON.
#[utoipa::path(
    post, path = "/api/v1/forward_backward", tag = "training",
    request_body(content((inline(Binary) = "application/x-protobuf"), (ForwardBackwardBody = "application/json"))),
    responses((status = 200, description = "accepted: its future", body = SubmitResponse), Refusals),
)]
pub(in crate::api) async fn forward_backward(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    mut body: RawBody,
) -> Reply<SubmitResponse> {
    let read = match body.media {
        Media::Protobuf => read_protobuf,
        Media::Json => read_json,
        Media::Other => {
            let text = "content-type must be application/x-protobuf or application/json".to_owned();
            return Err(ApiError::UnsupportedMediaType(text));
        }
    };
    let (found, request) = body.decode(read).await?;
    let (run, seq_id) = submit::ids(found, request.as_ref().err())?;
    let run = submit::find_run(&state, &tenant, &run, seq_id).await?;
    let (kind, new) = prepare(&state, &tenant, &run, request, &body).await?;
    submit::submit(&state, &tenant, &run, seq_id, kind, new).await
}

/// The ids, which may be readable when the rest is not, and the request.
pub(crate) type Read = (Option<(RunId, i64)>, Result<Pass, OpError>);

/// A request that can be read.
pub(crate) struct Pass {
    kind: RequestKind,
    /// What is stored: the message as the client sent it, or as it is written from JSON.
    payload: Bytes,
    /// The examples, or what is wrong with them: its future says so when its turn comes.
    batch: Result<RawBatch, OpError>,
    /// The message itself, where its examples name the sequences that they were sampled in.
    named: Option<Box<ForwardBackwardRequest>>,
}

impl Pass {
    fn new(payload: Bytes, request: ForwardBackwardRequest) -> Self {
        let kind = if request.forward_only { RequestKind::Forward } else { RequestKind::ForwardBackward };
        let named = provenance::applies(&request).then(|| Box::new(request.clone()));
        Self { kind, payload, batch: training::batch(request), named }
    }

    /// Makes the request from a decoded message and encodes it.
    pub(crate) fn written(request: ForwardBackwardRequest) -> Self {
        Self::new(training::encode(&request), request)
    }
}

fn read_protobuf(bytes: &Bytes) -> Read {
    let pass = training::decode(bytes.clone()).map(|request| Pass::new(bytes.clone(), request));
    (training::proto_ids(bytes), pass)
}

fn read_json(bytes: &Bytes) -> Read {
    let request = json::parse::<ForwardBackwardBody>(bytes).and_then(ForwardBackwardBody::into_proto);
    (json::training_ids(bytes), request.map(Pass::written))
}

/// What the scheduler gets of a request to a run, with the log-probabilities that were recorded of the sequences that it
/// names. Where this process executes it, its examples are checked now, so that
/// the engine has them ready when their turn comes.
pub(crate) async fn prepare(
    state: &AppState,
    tenant: &TenantId,
    run: &Run,
    pass: Result<Pass, OpError>,
    body: &RawBody,
) -> Result<(RequestKind, NewRequest), ApiError> {
    let Pass { kind, payload, batch, named } = match pass {
        Ok(pass) => pass,
        Err(error) => return Ok((RequestKind::ForwardBackward, NewRequest::rejected(error, &body.bytes))),
    };
    let identity = payload.clone();
    let (mut payload, mut batch) = match (named, batch) {
        (Some(request), Ok(batch)) => match recorded::resolve(state, tenant, *request, batch).await? {
            Ok((request, batch)) => (training::encode(&request), Ok(batch)),
            Err(error) => return Ok((kind, NewRequest { identity, ..NewRequest::rejected(error, &body.bytes) })),
        },
        (_, batch) => (payload, batch),
    };
    if let Ok(found) = &mut batch {
        match custom_loss(state, tenant, run, found).await? {
            Ok(Some(definition)) => payload = custom_loss::with_definition(&payload, &definition),
            Ok(None) => {}
            Err(error) => return Ok((kind, NewRequest { identity, ..NewRequest::rejected(error, &body.bytes) })),
        }
    }
    let tokens = batch.as_ref().map_or(0, tokens);
    let decoded = decoded(state, run, batch, body).await?;
    Ok((kind, NewRequest { payload, decoded, identity, tokens, stores: None, rejected: None }))
}

/// Gives a batch the custom loss that it names. Returns the definition, or why there is none.
async fn custom_loss(
    state: &AppState,
    tenant: &TenantId,
    run: &Run,
    batch: &mut RawBatch,
) -> Result<Result<Option<Bytes>, OpError>, ApiError> {
    let id = match training::custom_loss_id(batch) {
        Ok(Some(id)) => CustomLossId::new(id),
        Ok(None) => return Ok(Ok(None)),
        Err(error) => return Ok(Err(error)),
    };
    let unknown =
        || OpError::user(format!("loss_fn_config.loss_id: no custom loss {:?} in the run's session", id.as_str()));
    match state.scheduler.custom_loss(tenant, &id).await {
        Ok((session, definition)) if session == run.session => {
            batch.custom_loss = Some(custom_loss::read(&definition));
            Ok(Ok(Some(definition)))
        }
        Ok(_) | Err(Error::NotFound { .. }) => Ok(Err(unknown())),
        Err(error) => Err(error.into()),
    }
}

async fn decoded(
    state: &AppState,
    run: &Run,
    batch: Result<RawBatch, OpError>,
    body: &RawBody,
) -> Result<Decoded, ApiError> {
    let base_model = run.spec.base_model.clone();
    let Some(preparer) = state.preparer.clone().filter(|_| state.scheduler.serves_here(&base_model)) else {
        return Ok(Decoded::default());
    };
    let batch = match batch {
        Ok(batch) => beside(body.bytes.len(), move || preparer.prepare(&base_model, batch)).await?,
        Err(error) => Err(error),
    };
    Ok(Decoded::new(PreparedContent::Batch(batch)))
}

/// What a batch costs: the tokens of its examples with their targets.
fn tokens(batch: &RawBatch) -> u64 {
    let cost = |datum: &Datum| {
        let targets = datum.loss_fn_inputs.get("target_tokens").and_then(|tensor| tensor.shape.get(1));
        let (tokens, targets) = (datum.tokens.len() as u64, targets.map_or(1, |&k| k as u64));
        match batch.custom_loss {
            Some(_) => custom_loss_tokens(tokens, targets),
            None => scored_tokens(tokens, targets),
        }
    };
    batch.data.iter().map(cost).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::http::Method;
    use prost::Message;
    use serde_json::json;
    use trainyard_protocol::{LossConfig, PreparedBatch, Tensor, TensorValues};
    use trainyard_scheduler::Work;

    use super::*;
    use crate::api::tests::testing::*;
    use crate::auth::Keys;
    use crate::engine::testing::preparer;
    use crate::state::Limits;

    fn message(run: &str, seq_id: i32, forward_only: bool) -> Vec<u8> {
        let request = ForwardBackwardRequest {
            model_id: run.to_owned(),
            seq_id,
            loss_fn: "cross_entropy".to_owned(),
            forward_only,
            ..ForwardBackwardRequest::default()
        };
        request.encode_to_vec()
    }

    async fn post(server: &Server, encoding: &str, body: Vec<u8>) -> Got {
        let headers = [("content-type", "application/x-protobuf"), ("content-encoding", encoding)];
        server.call(Method::POST, "/api/v1/forward_backward", &headers, body).await
    }

    /// Chunks 2 and 3 arrive before chunk 1, are answered at once and run after it.
    #[tokio::test]
    async fn chunks_run_in_order_whatever_the_order_of_arrival() {
        let server = Server::start().await;
        let run = server.run().await;
        let mut futures = vec![];
        for seq_id in [2, 3, 1] {
            futures.push(post(&server, "identity", message(&run, seq_id, false)).await.text("request_id"));
        }
        for seq_id in 1..=3 {
            let work = server.next_work().await;
            assert_eq!((work.seq_id, work.kind), (seq_id, RequestKind::ForwardBackward));
            server.succeed_with_bytes(&work, b"result");
        }
        for future in &futures {
            let got = server.poll(future).await;
            assert_eq!(&got.body[..], b"result");
            assert_eq!(got.headers["content-type"], "application/x-protobuf");
        }
    }

    #[tokio::test]
    async fn zstd_and_retries_and_other_content() {
        let server = Server::start().await;
        let run = server.run().await;
        let body = message(&run, 1, true);
        let compressed = zstd::encode_all(&body[..], 3).unwrap();
        let first = post(&server, "zstd", compressed).await.text("request_id");
        assert_eq!(post(&server, "identity", body).await.text("request_id"), first);
        post(&server, "identity", message(&run, 1, false)).await.refused(422);
        assert_eq!(server.next_work().await.kind, RequestKind::Forward);
    }

    #[tokio::test]
    async fn large_bodies_pass_and_too_large_ones_are_refused() {
        let limits = Limits { max_body_bytes: 4 << 20, ..Limits::default() };
        let server = Server::with(limits, Keys::local()).await;
        let run = server.run().await;
        let mut large = message(&run, 1, false);
        // An unknown field of 3 MB, which readers skip.
        prost::encoding::bytes::encode(99, &vec![0_u8; 3 << 20], &mut large);
        post(&server, "identity", large.clone()).await.json();
        large.resize(5 << 20, 0);
        assert!(post(&server, "identity", large.clone()).await.refused(413).contains("4194304"));
        let bomb = zstd::encode_all(&large[..], 3).unwrap();
        assert!(bomb.len() < 1 << 20);
        post(&server, "zstd", bomb).await.refused(413);
    }

    #[tokio::test]
    async fn foreign_media_are_refused() {
        let server = Server::start().await;
        assert!(post(&server, "br", vec![]).await.refused(415).contains("br"));
        let headers = [("content-type", "text/plain")];
        server.call(Method::POST, "/api/v1/forward_backward", &headers, "x").await.refused(415);
        post(&server, "zstd", b"not zstd".to_vec()).await.refused(400);
        post(&server, "identity", b"\xff\xff".to_vec()).await.refused(400);
        post(&server, "identity", message("none:train:0", 1, false)).await.refused(404);
        post(&server, "identity", message("none:train:0", 0, false)).await.refused(400);
    }

    /// A malformed datum with readable ids: the request takes its position in the order and fails.
    #[tokio::test]
    async fn a_malformed_datum_consumes_its_seq_id() {
        let server = Server::start().await;
        let run = server.run().await;
        let mut body = message(&run, 1, false);
        prost::encoding::bytes::encode(3, &vec![0xff_u8; 4], &mut body);
        let future = post(&server, "identity", body).await.text("request_id");
        let failed = server.poll(&future).await.json();
        assert_eq!(failed["category"], "user");
        post(&server, "identity", message(&run, 2, false)).await.json();
        assert_eq!(server.next_work().await.seq_id, 2);
    }

    fn batch_of(work: &Work) -> Result<PreparedBatch, OpError> {
        match work.decoded.take() {
            Some(PreparedContent::Batch(batch)) => batch,
            other => unreachable!("{other:?}"),
        }
    }

    /// The worker gets checked examples, or what is wrong with them.
    #[tokio::test]
    async fn examples_are_checked_before_their_turn() {
        let server = Server::start().await;
        let run = server.run().await;
        for (seq_id, token, expected) in [(1, 99, Ok(1)), (2, 100, Err("outside the vocabulary of 100"))] {
            let tensor = json!({"data": [token, 2], "shape": [2], "dtype": "int64"});
            let input = json!({"chunks": [{"type": "encoded_text", "tokens": [1, 2]}]});
            let datum = json!({"model_input": input, "loss_fn_inputs": {"target_tokens": tensor}});
            let pass = json!({"data": [datum], "loss_fn": "cross_entropy"});
            let body = json!({"model_id": run, "seq_id": seq_id, "forward_backward_input": pass});
            server.post("forward_backward", body).await.json();
            let work = server.next_work().await;
            match (batch_of(&work), expected) {
                (Ok(batch), Ok(count)) => assert_eq!(batch.data.len(), count),
                (Err(error), Err(text)) => assert!(error.message.contains(text), "{error}"),
                (found, _) => unreachable!("{found:?}"),
            }
            server.succeed_with_bytes(&work, b"result");
        }
    }

    /// A body of some kilobytes that would take gigabytes once it is decoded.
    #[tokio::test]
    async fn a_bomb_of_datums_fails_alone() {
        let server = Server::start().await;
        let run = server.run().await;
        let mut body = message(&run, 1, false);
        body.extend([0x1a, 0].repeat(4 << 20));
        let bomb = zstd::bulk::compress(&body, 3).unwrap();
        assert!(bomb.len() < 64 << 10);
        let future = post(&server, "zstd", bomb).await.text("request_id");
        let failed = server.poll(&future).await.json();
        assert_eq!(failed["error"], "data: 4194304 datums, at most 65536 are allowed");
        post(&server, "identity", message(&run, 2, false)).await.json();
        assert_eq!(server.next_work().await.seq_id, 2);
    }

    #[test]
    fn targets_cost_what_they_are_beyond_a_tokens_worth() {
        let datum = |n: usize, shape: &[usize]| {
            let values = TensorValues::I64(vec![0; shape.iter().product()]);
            let targets = Tensor { shape: shape.to_vec(), values };
            Datum { tokens: vec![1; n], loss_fn_inputs: [("target_tokens".to_owned(), targets)].into() }
        };
        let batch = RawBatch {
            data: vec![datum(10, &[10]), datum(10, &[10, 64]), datum(10, &[10, 96])],
            loss_fn: "cross_entropy".to_owned(),
            loss_fn_config: LossConfig::new(),
            custom_loss: None,
        };
        assert_eq!(tokens(&batch), 10 + 10 + 15);
    }

    /// The ids are at the front, so they survive the loss of the rest.
    #[tokio::test]
    async fn a_body_that_was_cut_off_consumes_its_seq_id() {
        let server = Server::start().await;
        let run = server.run().await;
        let mut body = message(&run, 1, false);
        prost::encoding::bytes::encode(3, &vec![0_u8; 100], &mut body);
        body.truncate(body.len() - 50);
        let future = post(&server, "identity", body).await.text("request_id");
        let failed = server.poll(&future).await.json();
        assert!(failed["error"].as_str().unwrap().contains("ForwardBackwardRequest"), "{failed}");
        post(&server, "identity", message(&run, 2, false)).await.json();
        assert_eq!(server.next_work().await.seq_id, 2);
    }

    #[tokio::test]
    async fn json_is_stored_as_protobuf() {
        let server = Server::start().await;
        let run = server.run().await;
        let input = json!({
            "data": [{"model_input": {"chunks": [{"type": "encoded_text", "tokens": [1]}]},
                "loss_fn_inputs": {"target_tokens": {"data": [2], "dtype": "int64", "shape": [1]}}}],
            "loss_fn": "cross_entropy",
        });
        let body = json!({"model_id": run, "seq_id": 1, "forward_backward_input": input});
        server.post("forward_backward", body).await.json();
        let work = server.next_work().await;
        let stored = training::decode(work.payload.clone()).unwrap();
        assert_eq!((stored.seq_id, stored.data.len(), stored.forward_only), (1, 1, false));
        assert_eq!(batch_of(&work), preparer().prepare(MODEL, training::batch(stored).unwrap()));
        server.succeed_with_bytes(&work, b"result");
        server.post("forward", json!({"model_id": run, "seq_id": 2, "forward_input": input})).await.json();
        assert_eq!(server.next_work().await.kind, RequestKind::Forward);
    }
}

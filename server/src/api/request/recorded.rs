//! Recorded log-probabilities of the sequences that training examples name.

use trainyard_protocol::{OpError, RawBatch, TenantId};
use trainyard_wire::proto::ForwardBackwardRequest;
use trainyard_wire::provenance::Provenance;

use super::body::beside;
use crate::error::ApiError;
use crate::state::AppState;

/// A request whose `logprobs` are the recorded ones: the message to store, and its decoded content.
pub(super) type Resolved = Result<(ForwardBackwardRequest, RawBatch), OpError>;

/// Looks up the sequences that the examples of a request name. The inner error is the user's. The stored message
/// contains the recorded values, so that executing it again needs no record and gives the same bits.
pub(crate) async fn resolve(
    state: &AppState,
    tenant: &TenantId,
    mut request: ForwardBackwardRequest,
    mut batch: RawBatch,
) -> Result<Resolved, ApiError> {
    let mut provenance = match Provenance::read(&request, &batch) {
        Ok(provenance) => provenance,
        Err(error) => return Ok(Err(error)),
    };
    let mut renewals = Vec::new();
    // One after the other, because a result may be large.
    for id in provenance.requests() {
        let record = state.scheduler.recorded_result(tenant, &id).await?;
        if record.as_ref().is_some_and(|record| record.renewal_due) {
            renewals.push(id.clone());
        }
        let payload = record.map(|record| record.payload);
        let size = payload.as_ref().map_or(0, |payload| payload.len());
        let resolving = move || {
            let resolved = provenance.resolve(&id, payload.as_ref(), &batch);
            (provenance, batch, resolved)
        };
        let resolved;
        (provenance, batch, resolved) = beside(size, resolving).await?;
        if let Err(error) = resolved {
            return Ok(Err(error));
        }
    }
    if let Err(error) = provenance.apply(&mut request, &mut batch) {
        return Ok(Err(error));
    }
    state.scheduler.renew_records(tenant, renewals).await?;
    Ok(Ok((request, batch)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::http::Method;
    use prost::Message;
    use serde_json::json;
    use trainyard_wire::images::ImageRules;
    use trainyard_wire::proto::provenance_span::Span;
    use trainyard_wire::{proto, tensor, training};

    use crate::api::tests::testing::*;

    /// An example of a prompt of two tokens, as `sample` has it, and the two tokens of a sequence.
    fn message(run: &str, seq_id: i32, sequence: &str, logprobs: [f32; 3]) -> Vec<u8> {
        let tensor = |dtype: proto::DType, bytes| proto::Tensor {
            encoding: Some(proto::tensor::Encoding::Dense(bytes)),
            dtype: dtype.into(),
            shape: vec![3],
        };
        let span = |sampled: bool, offset, length| {
            let tokens = proto::TokenSpan { sequence_id: sequence.to_owned(), offset, length };
            let span = if sampled { Span::SampledTokens(tokens) } else { Span::PromptTokens(tokens) };
            proto::ProvenanceSpan { span: Some(span) }
        };
        let text = proto::EncodedTextChunk { tokens: tensor::token_bytes(&[1, 2, 7]) };
        let floats = |values: &[f32]| tensor(proto::DType::Float32, tensor::f32_bytes(values));
        let inputs = [
            ("target_tokens", tensor(proto::DType::Int64, tensor::i64_bytes(&[0, 7, 8]))),
            ("logprobs", floats(&logprobs)),
            ("advantages", floats(&[0.0, 1.0, 1.0])),
        ];
        let datum = proto::Datum {
            model_input: vec![proto::Chunk { chunk: Some(proto::chunk::Content::EncodedText(text)) }],
            loss_fn_inputs: inputs.map(|(name, tensor)| (name.to_owned(), tensor)).into(),
            model_input_spans: vec![span(false, 0, 2), span(true, 0, 1)],
            loss_fn_input_spans: vec![span(false, 1, 1), span(true, 0, 2)],
        };
        let request = proto::ForwardBackwardRequest {
            model_id: run.to_owned(),
            seq_id,
            data: vec![datum],
            loss_fn: "stable_reinforce".to_owned(),
            ..proto::ForwardBackwardRequest::default()
        };
        request.encode_to_vec()
    }

    async fn post(server: &Server, body: Vec<u8>) -> String {
        let headers = [("content-type", "application/x-protobuf")];
        server.call(Method::POST, "/api/v1/forward_backward", &headers, body).await.text("request_id")
    }

    /// Samples once; the ids of the two sequences.
    async fn sampled(server: &Server, sampler: &str, seq_id: i64, recorded: bool) -> Vec<String> {
        let mut body = sample(sampler, seq_id);
        body["record_stability_info"] = json!(recorded);
        let submitted = server.post("asample", body).await.json();
        let sequence = proto::SampledSequence {
            tokens: tensor::token_bytes(&[7, 8]),
            logprobs: Some(tensor::f32_bytes(&[-1.0, -2.0])),
            ..proto::SampledSequence::default()
        };
        let sequences = vec![sequence.clone(), sequence];
        let response = proto::SampleResponse { sequences, ..proto::SampleResponse::default() };
        server.succeed_with_bytes(&server.next_work().await, response.encode_to_vec().leak());
        server.poll(submitted["request_id"].as_str().unwrap()).await;
        submitted["sample_sequence_ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
    }

    #[tokio::test]
    async fn what_is_executed_has_the_recorded_log_probabilities() {
        let server = Server::start().await;
        let (run, sampler) = (server.run().await, server.sampler().await);
        let sequences = sampled(&server, &sampler, 0, true).await;
        let body = message(&run, 1, &sequences[1], [-5.0, -1.0004, -2.0]);
        let future = post(&server, body.clone()).await;
        let work = server.next_work().await;
        let stored =
            training::batch(training::decode(work.payload.clone()).unwrap(), &ImageRules::text_only("m")).unwrap();
        assert_eq!(stored.data[0].loss_fn_inputs["logprobs"], trainyard_protocol::Tensor::f32(vec![0.0, -1.0, -2.0]));
        assert_eq!(post(&server, body).await, future, "a retry is recognised");
    }

    #[tokio::test]
    async fn a_wrong_example_takes_its_place_and_fails() {
        let server = Server::start().await;
        let (run, sampler) = (server.run().await, server.sampler().await);
        let recorded = sampled(&server, &sampler, 0, true).await.remove(0);
        let plain = sampled(&server, &sampler, 1, false).await.remove(0);
        let cases = [
            (recorded.as_str(), [0.0, -1.1, -2.0], "logprobs: element 1 is -1.1, and the server recorded -1"),
            (plain.as_str(), [0.0, -1.0, -2.0], "the server has no record of the sequence"),
            ("unknown:0", [0.0, -1.0, -2.0], "the server has no record of the sequence unknown:0"),
        ];
        for (seq_id, (sequence, logprobs, text)) in (1..).zip(cases) {
            let body = message(&run, seq_id, sequence, logprobs);
            let future = post(&server, body.clone()).await;
            assert_eq!(post(&server, body).await, future);
            let failed = server.poll(&future).await.json();
            assert_eq!(failed["category"], "user");
            assert!(failed["error"].as_str().unwrap().contains(text), "{failed}");
        }
        post(&server, message(&run, 4, &recorded, [0.0, -1.0, -2.0])).await;
        assert_eq!(server.next_work().await.seq_id, 4);
    }
}

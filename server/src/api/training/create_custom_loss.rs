//! Handler of `POST create_custom_loss`.

use axum::extract::State;
use bytes::Bytes;
use trainyard_protocol::custom_loss::MAX_GRAPH_BYTES;
use trainyard_protocol::{OpError, SessionId};
use trainyard_scheduler::NewCustomLoss;
use trainyard_wire::custom_loss::CreateCustomLossRequest;
use trainyard_wire::futures::SubmitResponse;
use trainyard_wire::json;

use super::create_model::check_number;
use crate::api::request::body::RawBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

/// Bytes for ids and blanks in addition to the graph.
const MARGIN: usize = 64 << 10;

/// Stores a loss function as a graph of allowed operations. The session and `custom_loss_seq_id` identify it; its
/// future is done at once. Requests of the session's runs use it as the loss function `custom` with the setting
/// `loss_id`.
#[utoipa::path(
    post, path = "/api/v1/create_custom_loss", tag = "training", request_body = CreateCustomLossRequest,
    responses((status = 200, description = "accepted; the response names its future", body = SubmitResponse), Refusals),
)]
pub(in crate::api) async fn create_custom_loss(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    mut body: RawBody,
) -> Reply<SubmitResponse> {
    let read = |bytes: &Bytes| -> Result<(CreateCustomLossRequest, Bytes), OpError> {
        if bytes.len() > MAX_GRAPH_BYTES + MARGIN {
            let found = bytes.len();
            return Err(OpError::user(format!(
                "graph: the body has {found} bytes, but a graph has at most {MAX_GRAPH_BYTES}"
            )));
        }
        let request: CreateCustomLossRequest = json::parse(bytes)?;
        let definition = request.definition()?;
        Ok((request, definition))
    };
    let (request, definition) = body.decode(read).await?.map_err(|error| ApiError::invalid(error.message))?;
    check_number("custom_loss_seq_id", request.custom_loss_seq_id)?;
    let session = SessionId::new(request.session_id);
    let new = NewCustomLoss { session, seq_id: request.custom_loss_seq_id, definition };
    let id = state.scheduler.create_custom_loss(&tenant, new).await?;
    Ok(Answer(SubmitResponse { request_id: id.to_string(), model_id: None, sample_sequence_ids: None }))
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};
    use trainyard_protocol::{LossFn, PreparedContent};
    use trainyard_wire::images::ImageRules;

    use crate::api::tests::testing::*;

    pub(in crate::api) fn body(session: &str, seq_id: i64, target: &str) -> Value {
        let logprobs = json!({"ref": "logprobs"});
        let returned = json!({"tuple": [{"ref": "loss"}, {"dict": {}}]});
        json!({
            "session_id": session, "custom_loss_seq_id": seq_id, "name": "square", "type": "create_custom_loss",
            "inputs": [{"name": "logprobs", "rank": 1}],
            "graph": {"format": 1, "nodes": [
                {"op": "placeholder", "name": "logprobs", "target": "logprobs", "args": [], "kwargs": {}},
                {"op": "call_method", "name": "loss", "target": target, "args": [logprobs], "kwargs": {}},
                {"op": "output", "name": "output", "target": "output", "args": [returned], "kwargs": {}},
            ]},
        })
    }

    fn pass(run: &str, seq_id: i64, loss_id: &str) -> Value {
        let tensor = json!({"data": [1, 2], "shape": [2], "dtype": "int64"});
        let input = json!({"chunks": [{"type": "encoded_text", "tokens": [1, 2]}]});
        let datum = json!({"model_input": input, "loss_fn_inputs": {"target_tokens": tensor}});
        let pass = json!({"data": [datum], "loss_fn": "custom", "loss_fn_config": {"loss_id": loss_id}});
        json!({"model_id": run, "seq_id": seq_id, "forward_backward_input": pass})
    }

    #[tokio::test]
    async fn a_loss_is_created_once_and_its_future_is_done() {
        let server = Server::start().await;
        let session = server.session().await;
        for _ in 0..2 {
            let future = server.post("create_custom_loss", body(&session, 0, "sum")).await.text("request_id");
            let expected = json!({"loss_id": format!("{session}:loss:0"), "type": "create_custom_loss"});
            assert_eq!(server.poll(&future).await.json(), expected);
        }
        server.post("create_custom_loss", body(&session, 0, "mean")).await.refused(422);
        let refused = server.post("create_custom_loss", body(&session, 1, "item")).await.refused(400);
        assert!(refused.contains("graph.nodes[1]: node \"loss\" (call_method item): this target is not"), "{refused}");
        server.post("create_custom_loss", body(&session, -1, "sum")).await.refused(400);
        assert_eq!(server.post("create_custom_loss", body(&session, 256, "sum")).await.status, 200);
        server.post("create_custom_loss", body("nobody", 0, "sum")).await.refused(404);
        server.post("retrieve_future", json!({"request_id": format!("{session}:loss:1")})).await.refused(404);
        let mut large = body(&session, 1, "sum");
        large["name"] = "n".repeat(400 << 10).into();
        assert!(server.post("create_custom_loss", large).await.refused(400).contains("at most 262144"));
        server.post(&format!("sessions/{session}/finish"), json!({"reason": {"type": "success"}})).await;
        assert!(server.post("create_custom_loss", body(&session, 1, "sum")).await.status.is_client_error());
    }

    /// A request carries its loss: the worker needs nothing else.
    #[tokio::test]
    async fn a_request_carries_its_loss() {
        let server = Server::start().await;
        let run = server.run().await;
        let session = run.split(':').next().unwrap();
        let loss = server.post("create_custom_loss", body(session, 0, "sum")).await.text("request_id");
        server.post("forward_backward", pass(&run, 1, &loss)).await.json();
        let work = server.next_work().await;
        let Some(PreparedContent::Batch(Ok(batch))) = work.decoded.take() else { unreachable!() };
        let LossFn::Custom(found) = &batch.loss else { unreachable!("{:?}", batch.loss) };
        assert_eq!((found.name.as_str(), found.nodes.len()), ("square", 2));
        let stored = trainyard_wire::training::stored_batch(work.payload.clone(), &ImageRules::text_only("m")).unwrap();
        assert_eq!(stored.custom_loss.unwrap().unwrap(), *found);
    }

    #[tokio::test]
    async fn a_loss_of_another_session_is_unknown() {
        let server = Server::start().await;
        let (run, session) = (server.run().await, server.session().await);
        let other = server.post("create_custom_loss", body(&session, 0, "sum")).await.text("request_id");
        for (seq_id, loss, text) in
            [(1, other.as_str(), "no custom loss"), (2, "x", "no custom loss"), (3, "", "no custom")]
        {
            let future = server.post("forward_backward", pass(&run, seq_id, loss)).await.text("request_id");
            let failed = server.poll(&future).await.json();
            assert_eq!(failed["category"], "user");
            assert!(failed["error"].as_str().unwrap().contains(text), "{failed}");
        }
        let mut nameless = pass(&run, 4, &other);
        nameless["forward_backward_input"]["loss_fn_config"] = json!({});
        let future = server.post("forward_backward", nameless).await.text("request_id");
        assert!(server.poll(&future).await.json()["error"].as_str().unwrap().contains("loss_fn_config.loss_id"));
    }
}

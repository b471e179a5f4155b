//! Handler of `POST asample`.

use axum::extract::State;
use trainyard_protocol::SamplingSessionId;
use trainyard_wire::futures::SubmitResponse;
use trainyard_wire::images::{ImageRules, RequestImages};
use trainyard_wire::sampling::SampleRequest;

use crate::api::request::body::JsonBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::api::training::create_model::check_number;
use crate::auth::Tenant;
use crate::inference::submit::{NewSample, submit};
use crate::state::AppState;

/// Samples completions of a prompt. The sampling session and `seq_id` identify the request; `seq_id` does not order it.
#[utoipa::path(
    post, path = "/api/v1/asample", tag = "sampling", request_body = SampleRequest,
    responses((status = 200, description = "accepted; the response names its future", body = SubmitResponse), Refusals),
)]
pub(in crate::api) async fn asample(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    JsonBody(request): JsonBody<SampleRequest>,
) -> Reply<SubmitResponse> {
    check_number("seq_id", request.seq_id)?;
    let (id, seq_id) = (SamplingSessionId::new(request.sampling_session_id.clone()), request.seq_id);
    let session = state.scheduler.sampling_session(&tenant, &id).await?;
    let recorded = request.record_stability_info;
    let model = state.require_model(&session.base_model)?;
    let rules = ImageRules::new(&model, state.limits.images);
    let mut images = RequestImages::new(&rules);
    let (sample, server_seed) = request.into_sample(&mut images, || (state.random)())?;
    let new = NewSample { sampling_session: id, seq_id, sample, server_seed, recorded };
    let submitted = submit(&state, &tenant, &model, new).await?;
    Ok(Answer(SubmitResponse {
        request_id: submitted.request_id.to_string(),
        model_id: None,
        sample_sequence_ids: Some(submitted.sample_sequence_ids),
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use std::num::NonZeroU64;

    use serde_json::json;
    use trainyard_protocol::{BaseModel, DecodedImages, PreparedContent, TenantId};
    use trainyard_scheduler::{RequestKind, TenantPolicy, WorkItem};
    use trainyard_wire::payload::Payload;

    use super::*;
    use crate::api::tests::testing::*;
    use crate::auth::Keys;
    use crate::inference::submit::{check_against_model, check_queue};
    use crate::state::Limits;

    #[tokio::test]
    async fn each_completion_has_an_id_and_a_retry_repeats_them() {
        let server = Server::start().await;
        let sampler = server.sampler().await;
        // Clones count from a thousand million: seq_id needs 64 bits.
        let body = sample(&sampler, 7_000_000_000_000_000_000);
        let first = server.post("asample", body.clone()).await.json();
        assert_eq!(first["sample_sequence_ids"].as_array().unwrap().len(), 2);
        assert_eq!(server.post("asample", body.clone()).await.json(), first);
        let mut other = body;
        other["num_samples"] = json!(3);
        server.post("asample", other).await.refused(422);
        let work = server.next_work().await;
        assert_eq!((work.seq_id, work.kind), (7_000_000_000_000_000_000, RequestKind::Sample));
        let Payload::Sample { sample: stored, server_seed: true } = Payload::decode(&work.payload).unwrap() else {
            panic!()
        };
        assert_eq!((stored.prompt.as_slice(), stored.params.seed), (&[1, 2][..], 40));
        assert_eq!(work.decoded.take(), Some(PreparedContent::Sample { sample: stored, images: DecodedImages::new() }));
    }

    #[tokio::test]
    async fn a_bad_sample_is_refused_by_name() {
        let server = Server::start().await;
        let sampler = server.sampler().await;
        let prompt = |tokens: Vec<i64>| json!({"chunks": [{"type": "encoded_text", "tokens": tokens}]});
        let targets = |k: i64| json!({"data": [1], "dtype": "int64", "shape": [1, k], "sparse_crow_indices": [0, 1], "sparse_col_indices": [0]});
        for (field, value, text) in [
            ("prompt", prompt(vec![]), "prompt"),
            ("prompt", prompt(vec![1, 100]), "prompt: token 1 is 100"),
            ("prompt", prompt(vec![-1]), "prompt: token 0 is -1"),
            (
                "prompt",
                prompt(vec![1; 61]),
                "Prompt length plus max_tokens exceeds the model's context window: 61 + 4 > 64",
            ),
            (
                "prompt",
                json!({"chunks": [{"type": "image", "data": "", "format": "png"}]}),
                "prompt.chunks[0]: model acme/tiny does not take images",
            ),
            ("num_samples", json!(0), "num_samples"),
            ("num_samples", json!(100_000), "num_samples"),
            ("seq_id", json!(-1), "seq_id"),
            ("sampling_params", json!({"temperature": -1.0}), "sampling_params.temperature"),
            ("sampling_params", json!({"top_p": 0.0}), "sampling_params.top_p"),
            ("sampling_params", json!({"stop": [1, "a"]}), "stop"),
            ("sampling_params", json!({"stop": [100]}), "sampling_params.stop: token 100"),
            ("sampling_params", json!({"min_p": 1.5}), "sampling_params.min_p: 1.5 is outside [0, 1]"),
            ("sampling_params", json!({"presence_penalty": 3}), "sampling_params.presence_penalty"),
            ("sampling_params", json!({"frequency_penalty": -3}), "sampling_params.frequency_penalty"),
            ("sampling_params", json!({"repetition_penalty": 0}), "sampling_params.repetition_penalty"),
            ("sampling_params", json!({"logit_bias": {"7": 101}}), "sampling_params.logit_bias: 101 for token 7"),
            ("sampling_params", json!({"logit_bias": {"100": 1}}), "sampling_params.logit_bias: token 100 is outside"),
            ("sampling_params", json!({"logit_bias": {"-1": 1}}), "logit_bias"),
            ("sampling_params", json!({"logit_bias": {"1": 1, "01": 2}}), "logit_bias"),
            ("sampling_params", json!({"logit_bias": {"1": "x"}}), "logit_bias"),
            ("sampling_params", json!({"json_schema": "{}"}), "sampling_params.json_schema: must be an object"),
            ("prompt_logprobs_last_n", json!(1), "prompt_logprobs_last_n"),
            ("target_prompt_logprobs", targets(101), "target_prompt_logprobs: 101 columns, at most 100 are allowed"),
            ("target_prompt_logprobs", targets(1 << 25), "33554432 columns, at most 1024 are allowed"),
        ] {
            let mut body = sample(&sampler, 0);
            body[field] = value;
            let refused = server.post("asample", body).await.refused(400);
            assert!(refused.contains(text), "{refused}");
        }
        let mut unbounded = sample(&sampler, 1);
        unbounded["prompt"] = prompt(vec![1; 64]);
        unbounded["sampling_params"] = json!({});
        server.post("asample", unbounded).await.refused(400);
        server.post("asample", sample("none:sample:0", 0)).await.refused(404);
        // What compute_logprobs sends.
        let mut scored = sample(&sampler, 1);
        scored["prompt"] = prompt(vec![1; 64]);
        (scored["num_samples"], scored["sampling_params"]) = (json!(1), json!({"max_tokens": 1}));
        server.post("asample", scored.clone()).await.refused(400);
        scored["prompt_logprobs"] = json!(true);
        server.post("asample", scored).await.json();
    }

    #[test]
    fn candidates_of_all_tokens_together_have_a_limit() {
        let model = |max_context_length| BaseModel {
            name: MODEL.to_owned(),
            arch: "llama".to_owned(),
            max_context_length,
            vocab_size: 100,
            parameters: 1_000,
            vision: None,
        };
        let check = |change: &dyn Fn(&mut SampleRequest), context| {
            let mut request: SampleRequest = serde_json::from_value(sample("s:sample:0", 0)).unwrap();
            request.topk_sample_logprobs = 1_024;
            change(&mut request);
            let rules = ImageRules::text_only(MODEL);
            let (sample, _) = request.into_sample(&mut RequestImages::new(&rules), || 0).unwrap();
            check_against_model(&sample, &model(context))
        };
        let refused = |max_tokens, context| {
            let change = |request: &mut SampleRequest| {
                (request.num_samples, request.sampling_params.max_tokens) = (1_024, max_tokens);
            };
            check(&change, context).map_err(|error| error.to_string())
        };
        refused(Some(4), 1_000).unwrap();
        let message = refused(Some(5), 1_000).unwrap_err();
        let expected = "num_samples * max_tokens * topk_sample_logprobs: 1024 * 5 * 1024 is more than 4194304";
        assert!(message.contains(expected), "{message}");
        // Without max_tokens it is what the context leaves, of which the prompt has two.
        refused(None, 6).unwrap();
        refused(None, 7).unwrap_err();
        check(&|request| request.num_samples = 1, 4_096).unwrap();
    }

    #[tokio::test]
    async fn a_sample_beyond_the_queued_tokens_is_rejected_with_quota_limit_and_use() {
        let policy = TenantPolicy { max_queued_tokens: NonZeroU64::new(25), ..TenantPolicy::default() };
        let server = Server::granted(policy).await;
        let sampler = server.sampler().await;
        // Each may take 2 + 2 * 4 tokens.
        for seq_id in 0..2 {
            server.post("asample", sample(&sampler, seq_id)).await.json();
        }
        let refused = server.post("asample", sample(&sampler, 2)).await;
        refused.refused(429);
        assert_eq!(refused.headers["retry-after"], "1");
        let body = refused.any_json();
        assert_eq!(
            (&body["quota"], &body["limit"], &body["used"]),
            (&json!("max_queued_tokens"), &json!(25), &json!(20))
        );
    }

    #[tokio::test]
    async fn targets_cost_more_than_the_prompt_that_they_are_scored_in() {
        let policy = TenantPolicy { max_queued_tokens: NonZeroU64::new(1), ..TenantPolicy::default() };
        let server = Server::granted(policy).await;
        let sampler = server.sampler().await;
        let mut body = sample(&sampler, 0);
        body["target_prompt_logprobs"] = json!({"data": [1], "dtype": "int64", "shape": [1, 100],
            "sparse_crow_indices": [0, 1], "sparse_col_indices": [7]});
        server.post("asample", body).await.json();
        let refused = server.post("asample", sample(&sampler, 1)).await;
        // 2 * 100 / 64 instead of 2, and twice 4 to sample.
        assert_eq!((refused.status.as_u16(), &refused.any_json()["used"]), (429, &json!(4 + 2 * 4)));
    }

    #[tokio::test]
    async fn without_max_tokens_a_sample_costs_what_the_context_leaves() {
        let policy = TenantPolicy { max_queued_tokens: NonZeroU64::new(200), ..TenantPolicy::default() };
        let server = Server::granted(policy).await;
        let sampler = server.sampler().await;
        let mut unbounded = sample(&sampler, 0);
        unbounded["sampling_params"] = json!({});
        server.post("asample", unbounded.clone()).await.json();
        unbounded["seq_id"] = json!(1);
        let refused = server.post("asample", unbounded).await;
        assert_eq!((refused.status.as_u16(), &refused.any_json()["used"]), (429, &json!(2 + 2 * 62)));
    }

    #[tokio::test]
    async fn a_tenant_has_as_many_samples_as_its_limit_allows() {
        let policy = TenantPolicy { max_queued_samples: NonZeroU64::new(2), ..TenantPolicy::default() };
        let server = Server::granted(policy).await;
        let sampler = server.sampler().await;
        for seq_id in 0..2 {
            server.post("asample", sample(&sampler, seq_id)).await.json();
        }
        let refused = server.post("asample", sample(&sampler, 2)).await;
        assert_eq!((refused.status.as_u16(), refused.headers["retry-after"].to_str().unwrap()), (429, "1"));
        let body = refused.any_json();
        assert_eq!((&body["quota"], &body["used"]), (&json!("max_queued_samples"), &json!(2)));
        // A repetition of what was accepted is no new sample.
        server.post("asample", sample(&sampler, 1)).await.json();
        let WorkItem::Start(work) = server.state.scheduler.take_work().remove(0) else { panic!("no work") };
        server.succeed(&work, &json!({}), Vec::new());
        server.post("asample", sample(&sampler, 2)).await.json();
    }

    #[tokio::test]
    async fn a_full_queue_rejects_samples() {
        let limits = Limits { max_queued: 2, ..Limits::default() };
        let server = Server::with(limits, Keys::local()).await;
        let sampler = server.sampler().await;
        let run = server.run().await;
        for seq_id in 2..5 {
            server.post("optim_step", adam(&run, seq_id, 0.1)).await.json();
        }
        for seq_id in 0..2 {
            server.post("asample", sample(&sampler, seq_id)).await.json();
        }
        let busy = server.post("asample", sample(&sampler, 2)).await;
        busy.refused(429);
        assert_eq!(busy.headers["retry-after"], "1");
        let other = TenantId::new("other");
        assert!(check_queue(&server.state, &other).is_ok(), "another tenant has a share of its own");
        // They count until they have ended.
        let WorkItem::Start(work) = server.state.scheduler.take_work().remove(0) else { panic!("no work") };
        server.post("asample", sample(&sampler, 2)).await.refused(429);
        server.succeed(&work, &json!({}), Vec::new());
        server.post("asample", sample(&sampler, 2)).await.json();
    }
}

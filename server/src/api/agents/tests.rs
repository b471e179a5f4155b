#![allow(clippy::unwrap_used, reason = "tests")]

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};
use trainyard_protocol::{AgentSessionId, RequestId, TenantId};
use trainyard_scheduler::NewAgentTurn;

use crate::api::tests::testing::*;
use crate::auth::Keys;
use crate::state::Limits;

async fn keyed() -> Server {
    let keys = [(KEY, "alpha"), ("tml-b", "beta")].map(|(key, tenant)| (Keys::digest(key), TenantId::new(tenant)));
    Server::with(Limits::default(), Keys::new(keys.to_vec())).await
}

async fn create(server: &Server, body: Value) -> (String, String) {
    let created = server.post("agent_sessions", body).await;
    (created.text("agent_session_id"), created.text("api_key"))
}

async fn call(server: &Server, key: &str, method: Method, path: &str) -> Got {
    server.call(method, path, &[("x-api-key", key)], Body::empty()).await
}

#[tokio::test]
async fn a_session_has_a_key_and_addresses_for_both_apis() {
    let server = keyed().await;
    let limits = json!({"max_tokens": 100, "max_turns": 3, "seconds": 60, "max_tools": 2});
    let created = server.post("agent_sessions", json!({"base_model": MODEL, "limits": limits})).await;
    assert_eq!(created.text("base_url"), "http://trainyard.test:8000/v1");
    assert_eq!(created.text("anthropic_base_url"), "http://trainyard.test:8000");
    assert_eq!(created.text("expires_at"), "2023-11-14T22:14:20Z");
    assert!(created.text("api_key").starts_with("tml-agent-") && created.text("api_key").len() == 53);
    let id = created.text("agent_session_id");
    let found = server.get(&format!("agent_sessions/{id}")).await.json();
    let expected = json!({"agent_session_id": id, "base_model": MODEL, "state": "open", "limits": limits, "turns": 0,
        "tokens": 0, "created_at": "2023-11-14T22:13:20Z", "expires_at": "2023-11-14T22:14:20Z"});
    assert_eq!(found, expected);
    assert_eq!(server.get("agent_sessions?limit=1").await.json(), json!({"agent_sessions": [expected]}));
    assert!(server.get("agent_sessions?limit=0").await.refused(400).starts_with("limit"));
    assert!(server.get("agent_sessions?project_id=p").await.refused(400).starts_with("project_id"));
}

#[tokio::test]
async fn limits_of_a_session_have_ranges_and_its_weights_exist() {
    let server = Server::start().await;
    for (limits, text) in [
        (json!({"max_turns": 0}), "limits.max_turns: 0 is not between 1 and 4096"),
        (json!({"max_turns": 4097}), "limits.max_turns: 4097"),
        (json!({"seconds": 604_801}), "limits.seconds: 604801 is not between 1 and 604800"),
        (json!({"max_tokens": (1 << 22) + 1}), "limits.max_tokens: 4194305 is not between 1 and 4194304"),
        (json!({"turns": 1}), "unknown field `turns`"),
    ] {
        let refused = server.post("agent_sessions", json!({"base_model": MODEL, "limits": limits})).await.refused(400);
        assert!(refused.contains(text), "{refused}");
    }
    assert!(server.post("agent_sessions", json!({})).await.refused(400).starts_with("base_model"));
    server.post("agent_sessions", json!({"base_model": "none"})).await.refused(400);
    server.post("agent_sessions", json!({"model_path": "tinker://r/sampler_weights/a"})).await.refused(404);
    let run = server.run().await;
    let path = server.checkpoint(&run, 1, "sampler_weights", "a").await;
    let (id, key) = create(&server, json!({"model_path": path})).await;
    assert_eq!(server.get(&format!("agent_sessions/{id}")).await.text("model_path"), path);
    let listed = call(&server, &key, Method::GET, "/v1/models").await.json();
    assert_eq!(listed["data"][0]["root"], MODEL);
}

#[tokio::test]
async fn a_session_samples_as_a_sampling_session_does() {
    let server = keyed().await;
    let owner = server.session().await;
    let sampler = json!({"session_id": owner, "sampling_session_seq_id": 2, "base_model": MODEL});
    let sampler = server.post("create_sampling_session", sampler).await.text("sampling_session_id");
    let (id, key) = create(&server, json!({"sampling_session_id": sampler})).await;
    let found = server.get(&format!("agent_sessions/{id}")).await.json();
    assert_eq!((&found["sampling_session_id"], &found["base_model"]), (&json!(sampler), &json!(MODEL)));
    assert!(found.get("model_path").is_none());
    let listed = call(&server, &key, Method::GET, "/v1/models").await.json();
    assert_eq!((&listed["data"][0]["id"], &listed["data"][0]["root"]), (&json!(sampler), &json!(MODEL)));
    create(&server, json!({"sampling_session_id": sampler, "base_model": MODEL})).await;
    for (name, value) in [("model_path", "tinker://r/sampler_weights/a"), ("base_model", "other")] {
        let refused = server.post("agent_sessions", json!({"sampling_session_id": sampler, name: value})).await;
        assert!(refused.refused(400).contains(name));
    }
    server.post("agent_sessions", json!({"sampling_session_id": "s:sample:1"})).await.refused(404);
    server.post_as("tml-b", "agent_sessions", json!({"sampling_session_id": sampler})).await.refused(404);
    call(&server, "tml-b", Method::GET, &format!("/v1/models/{sampler}")).await.refused(404);
}

#[tokio::test]
async fn the_key_serves_only_the_compatible_apis() {
    for server in [keyed().await, Server::start().await] {
        let (id, key) = create(&server, json!({"base_model": MODEL})).await;
        let listed = call(&server, &key, Method::GET, "/v1/models").await.json();
        assert_eq!((listed["data"].as_array().unwrap().len(), &listed["data"][0]["id"]), (1, &json!(MODEL)));
        call(&server, &key, Method::GET, &format!("/v1/models/{MODEL}")).await.json();
        call(&server, &key, Method::GET, "/v1/models/other").await.refused(404);
        for (method, path) in [
            (Method::GET, "/api/v1/sessions".to_owned()),
            (Method::GET, format!("/api/v1/agent_sessions/{id}")),
            (Method::GET, format!("/api/v1/agent_sessions/{id}/trajectories")),
            (Method::POST, format!("/api/v1/agent_sessions/{id}/rewards")),
            (Method::DELETE, format!("/api/v1/agent_sessions/{id}")),
            (Method::POST, "/api/v1/agent_sessions".to_owned()),
            (Method::POST, "/api/v1/asample".to_owned()),
            (Method::POST, "/api/v1/auth/token".to_owned()),
            (Method::GET, "/api/v1/auth/whoami".to_owned()),
            (Method::DELETE, "/api/v1/auth/apikey/me".to_owned()),
        ] {
            let refused = call(&server, &key, method.clone(), &path).await.refused(403);
            assert!(
                refused.contains("its key serves only the OpenAI and Anthropic APIs"),
                "{method} {path}: {refused}"
            );
        }
        // A key of the same form that no session has is not the local tenant's.
        call(&server, "tml-agent-unknown", Method::GET, "/v1/models").await.refused(401);
    }
}

#[tokio::test]
async fn the_key_of_a_session_that_is_over_is_refused() {
    let server = keyed().await;
    let (ended, ended_key) = create(&server, json!({"base_model": MODEL})).await;
    let (expired, expired_key) = create(&server, json!({"base_model": MODEL, "limits": {"seconds": 10}})).await;
    for _ in 0..2 {
        let got = server.call(Method::DELETE, &format!("/api/v1/agent_sessions/{ended}"), &[], Body::empty()).await;
        assert_eq!(got.status.as_u16(), 204);
    }
    server.clock.advance(10);
    for key in [ended_key, expired_key] {
        let refused = call(&server, &key, Method::GET, "/v1/models").await.refused(401);
        assert_eq!(refused, "the agent session of the API key has ended");
    }
    for (id, state) in [(ended, "ended"), (expired, "expired")] {
        assert_eq!(server.get(&format!("agent_sessions/{id}")).await.text("state"), state);
    }
}

#[tokio::test]
async fn without_keys_the_key_of_a_session_that_is_over_is_not_the_local_tenant_s() {
    let server = Server::start().await;
    let (_, key) = create(&server, json!({"base_model": MODEL, "limits": {"seconds": 10}})).await;
    let ask = async |key: &str| {
        let request = Request::builder().uri("/v1/models").header("host", "localhost:8000").header("x-api-key", key);
        server.send(request.body(Body::empty()).unwrap()).await
    };
    ask(&key).await.json();
    server.clock.advance(10);
    ask(&key).await.refused(401);
    ask("tml-agent-unknown").await.refused(401);
    ask("EMPTY").await.json();
}

#[tokio::test]
async fn another_tenant_s_session_does_not_exist() {
    let server = keyed().await;
    let (id, _) = create(&server, json!({"base_model": MODEL})).await;
    let path = format!("/api/v1/agent_sessions/{id}");
    for (method, path) in
        [(Method::GET, path.clone()), (Method::DELETE, path.clone()), (Method::GET, format!("{path}/trajectories"))]
    {
        call(&server, "tml-b", method, &path).await.refused(404);
    }
    server.post_as("tml-b", &format!("agent_sessions/{id}/rewards"), json!({"reward": 1})).await.refused(404);
    assert_eq!(
        call(&server, "tml-b", Method::GET, "/api/v1/agent_sessions").await.json(),
        json!({"agent_sessions": []})
    );
}

#[tokio::test]
async fn rewards_reach_the_trajectories() {
    let server = Server::start().await;
    let (id, _) = create(&server, json!({"base_model": MODEL})).await;
    let turn = NewAgentTurn {
        request: RequestId::new("r"),
        choice: 0,
        parent: None,
        branch_reason: None,
        digest: String::new(),
        messages: 2,
        weights: MODEL.to_owned(),
        finish_reason: "stop".to_owned(),
        content: json!({"said": {"content": "x"}, "temperature": 0.5,
            "format": {"reasoning": false, "begins_in_reasoning": false, "tool_calls": false}})
        .to_string(),
        prompt: vec![1],
        sampled: vec![2],
        logprobs: vec![-0.25],
    };
    let (tenant, session) = (TenantId::new("local"), AgentSessionId::new(id.clone()));
    server.state.scheduler.record_agent_turns(&tenant, &session, vec![turn]).await.unwrap();
    let path = format!("agent_sessions/{id}/rewards");
    for body in [json!({"reward": 3}), json!({"reward": 2, "branch": "r.0"}), json!({"reward": 1.5, "turn_id": "r.0"})]
    {
        server.post(&path, body).await.json();
    }
    for (status, body) in [
        (400, json!({"reward": 1, "turn_id": "r.0", "branch": "r.0"})),
        (400, json!({})),
        (404, json!({"reward": 1, "turn_id": "r.1"})),
        (404, json!({"reward": 1, "turn_id": "r"})),
        (404, json!({"reward": 1, "branch": "q.0"})),
    ] {
        server.post(&path, body).await.refused(status);
    }
    let got = server.get(&format!("agent_sessions/{id}/trajectories")).await.json();
    let vector = |dtype: &str, data: Value| json!({"data": data, "dtype": dtype, "shape": [1]});
    let expected = json!({"branch": "r.0", "reward": 2.0, "truncated": false,
        "datum": {"model_input": {"chunks": [{"type": "encoded_text", "tokens": [1]}]}, "loss_fn_inputs": {
            "target_tokens": vector("int64", json!([2])), "weights": vector("float32", json!([1.0])),
            "logprobs": vector("float32", json!([-0.25])), "advantages": vector("float32", json!([1.5]))}},
        "turns": [{"turn_id": "r.0", "start": 1, "tokens": 1, "trained": true, "finish_reason": "stop", "weights": MODEL,
            "temperature": 0.5, "reward": 1.5}]});
    assert_eq!(got, json!({"trajectories": [expected]}));
    assert!(server.get(&format!("agent_sessions/{id}/trajectories?limit=0")).await.refused(400).starts_with("limit"));
}

#![allow(clippy::unwrap_used, reason = "tests")]

use axum::body::Body;
use axum::http::Method;
use serde_json::{Value, json};
use trainyard_protocol::{AgentSessionId, RequestId, TenantId};
use trainyard_scheduler::NewAgentTurn;

use super::{SHOWN, TOKENS};
use crate::api::tests::testing::*;
use crate::auth::Keys;
use crate::state::Limits;

fn turn(request: &str, parent: Option<u64>, prompt: usize, sampled: usize) -> NewAgentTurn {
    NewAgentTurn {
        request: RequestId::new(request),
        choice: 0,
        parent,
        branch_reason: (request == "r4").then(|| "history_differs".to_owned()),
        digest: String::new(),
        messages: 2,
        weights: MODEL.to_owned(),
        finish_reason: if request == "r3" { "length" } else { "stop" }.to_owned(),
        content: json!({"said": {"content": "x"}, "temperature": 0.5,
            "format": {"reasoning": false, "begins_in_reasoning": false, "tool_calls": false}})
        .to_string(),
        prompt: (0..prompt as u32).collect(),
        sampled: (0..sampled as u32).collect(),
        logprobs: vec![-0.25; sampled],
    }
}

/// A server, and a session of tenant alpha with these turns, in the order of their numbers from 1.
async fn with_turns(turns: Vec<NewAgentTurn>) -> (Server, String) {
    let keys = [(KEY, "alpha"), ("tml-b", "beta")].map(|(key, tenant)| (Keys::digest(key), TenantId::new(tenant)));
    let server = Server::with(Limits::default(), Keys::new(keys.to_vec())).await;
    let id = server.post("agent_sessions", json!({"base_model": MODEL})).await.text("agent_session_id");
    let (tenant, session) = (TenantId::new("alpha"), AgentSessionId::new(id.clone()));
    for turn in turns {
        server.state.scheduler.record_agent_turns(&tenant, &session, vec![turn]).await.unwrap();
    }
    (server, id)
}

async fn get(server: &Server, key: &str, path: &str) -> Got {
    server.call(Method::GET, path, &[("x-api-key", key)], Body::empty()).await
}

#[tokio::test]
async fn a_session_is_shown_turn_by_turn_with_what_is_trained() {
    let turns =
        vec![turn("r1", None, 2, 1), turn("r2", Some(1), 1, 2), turn("r3", Some(1), 1, 1), turn("r4", None, 1, 1)];
    let (server, id) = with_turns(turns).await;
    server.post(&format!("agent_sessions/{id}/rewards"), json!({"reward": 2, "branch": "r3.0"})).await.json();
    let path = format!("/console/data/agent_sessions/{id}");
    let found = get(&server, KEY, &path).await.json();
    assert_eq!((&found["session"]["turns"], &found["next"]), (&json!(4), &json!(null)));
    let branch = |branch: &str, turns: u32, shared: u32, tokens: u32| {
        json!({"branch": branch, "turns": turns, "shared": shared, "tokens": tokens, "reason": null, "reward": null,
            "truncated": false})
    };
    let mut expected = [branch("r2.0", 2, 0, 6), branch("r3.0", 2, 1, 5), branch("r4.0", 1, 0, 2)];
    (expected[1]["reward"], expected[1]["truncated"]) = (json!(2.0), json!(true));
    expected[2]["reason"] = json!("history_differs");
    assert_eq!(found["branches"], json!(expected));
    let first = &found["turns"][0];
    assert_eq!(
        (&first["turn_id"], &first["trained"], &first["temperature"]),
        (&json!("r1.0"), &json!(true), &json!(0.5))
    );
    assert_eq!((&first["prompt"]["ids"], &first["sampled"]["logprobs"]), (&json!([0, 1]), &json!([-0.25])));
    let second = get(&server, KEY, &format!("{path}?branch=1")).await.json();
    let trained =
        |of: &Value| of["turns"].as_array().unwrap().iter().map(|turn| turn["trained"] == true).collect::<Vec<_>>();
    assert_eq!(trained(&second), [false, true]);
    assert_eq!(get(&server, KEY, &format!("{path}?branch=3")).await.json()["turns"], json!([]));
    get(&server, "tml-b", &path).await.refused(404);
}

#[tokio::test]
async fn long_turns_are_cut_and_continue_on_further_pages() {
    let turns =
        (1..=5).map(|at: u64| turn(&format!("r{at}"), at.checked_sub(1).filter(|&at| at > 0), SHOWN + 1, SHOWN + 2));
    let (server, id) = with_turns(turns.collect()).await;
    let path = format!("/console/data/agent_sessions/{id}");
    let found = get(&server, KEY, &path).await.json();
    assert_eq!(
        (&found["next"], found["turns"].as_array().unwrap().len()),
        (&json!(TOKENS / SHOWN / 2), TOKENS / SHOWN / 2)
    );
    let first = &found["turns"][0];
    assert_eq!((&first["prompt"]["count"], &first["prompt"]["ids"][0]), (&json!(SHOWN + 1), &json!(1)));
    let sampled = (first["sampled"]["ids"].as_array().unwrap().len(), &first["sampled"]["ids"][0]);
    assert_eq!((&first["sampled"]["count"], sampled), (&json!(SHOWN + 2), (SHOWN, &json!(0))));
    let last = get(&server, KEY, &format!("{path}?from=4")).await.json();
    assert_eq!((&last["next"], &last["turns"][0]["turn_id"]), (&json!(null), &json!("r5.0")));
}

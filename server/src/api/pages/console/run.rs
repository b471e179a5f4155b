//! `GET /console/data/runs/{run_id}`: the configuration of a run.

use std::collections::BTreeMap;

use axum::extract::State;
use serde::Serialize;
use trainyard_protocol::{LoraSpec, Optimizer, RunId};
use trainyard_scheduler::ListedRun;
use trainyard_wire::catalogue::NumericsChange;
use trainyard_wire::timestamp::rfc3339;

use super::runs::{name_of, state_of};
use crate::api::request::extract::ApiPath;
use crate::api::request::listing::numerics_change;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::state::AppState;

/// Configuration of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Configuration {
    run_id: String,
    /// Metadata `name` of the run.
    name: Option<String>,
    session_id: String,
    state: &'static str,
    /// Whether its weights are lost.
    corrupted: bool,
    base_model: String,
    /// The adapter; absent if all parameters are trained.
    lora: Option<Adapter>,
    optimizer: &'static str,
    project: Option<String>,
    tags: Vec<String>,
    user_metadata: BTreeMap<String, String>,
    created: String,
    last_request: String,
    numerics_changed: Vec<NumericsChange>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Adapter {
    rank: u32,
    /// Numerator of the scale.
    alpha: f32,
    /// The seed as text, because numbers in browsers have fewer digits.
    seed: String,
    /// Kinds of layers that the adapter covers.
    adapts: Vec<&'static str>,
}

/// Returns the configuration of one of the caller's runs.
pub(super) async fn run(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath(run_id): ApiPath<String>,
) -> Reply<Configuration> {
    let listed = state.scheduler.listed_run(&tenant, &RunId::new(run_id)).await?;
    let run_state = state_of(&listed);
    let ListedRun { run, project, tags, .. } = listed;
    Ok(Answer(Configuration {
        run_id: run.id.to_string(),
        session_id: run.session.to_string(),
        state: run_state,
        corrupted: run.corrupted,
        base_model: run.spec.base_model,
        lora: run.spec.lora.as_ref().map(adapter),
        optimizer: match run.spec.optimizer {
            Optimizer::AdamW => "AdamW",
        },
        project,
        tags,
        name: name_of(&run.user_metadata),
        user_metadata: run.user_metadata,
        created: rfc3339(run.created_at.as_millis()),
        last_request: rfc3339(run.last_request_at.as_millis()),
        numerics_changed: run.numerics_changes.into_iter().map(numerics_change).collect(),
    }))
}

fn adapter(lora: &LoraSpec) -> Adapter {
    let layers = [(lora.train_attn, "attention"), (lora.train_mlp, "MLP"), (lora.train_unembed, "unembedding")];
    let adapts = layers.into_iter().filter(|(is_trained, _)| *is_trained).map(|(_, layer)| layer).collect();
    Adapter { rank: lora.rank, alpha: lora.alpha, seed: lora.seed.to_string(), adapts }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::body::Body;
    use axum::http::Method;
    use serde_json::json;

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn a_run_is_described_to_its_owner() {
        let server = Server::start().await;
        let body = json!({
            "tags": ["first"], "user_metadata": {}, "sdk_version": "0.38.0", "type": "create_session", "project_id": "p",
        });
        let session = server.post("create_session", body).await.text("session_id");
        let lora = json!({"rank": 8, "seed": 7, "train_unembed": false, "train_mlp": true, "train_attn": true});
        let body = json!({
            "session_id": session, "model_seq_id": 0, "base_model": MODEL, "user_metadata": {"who": "me", "name": "baseline"},
            "lora_config": lora, "optimizer_config": {"type": "adamw"}, "type": "create_model",
        });
        let run = server.post("create_model", body).await.text("model_id");
        let get =
            async |run: &str| server.call(Method::GET, &format!("/console/data/runs/{run}"), &[], Body::empty()).await;
        let found = get(&run).await.json();
        assert_eq!((&found["state"], &found["session_id"]), (&json!("creating"), &json!(session)));
        assert_eq!(found["lora"], json!({"rank": 8, "alpha": 32.0, "seed": "7", "adapts": ["attention", "MLP"]}));
        assert_eq!((&found["project"], &found["tags"]), (&json!("p"), &json!(["first"])));
        assert_eq!(
            (&found["optimizer"], &found["user_metadata"]),
            (&json!("AdamW"), &json!({"who": "me", "name": "baseline"}))
        );
        assert_eq!(found["name"], "baseline");
        get("none:train:0").await.refused(404);
    }
}

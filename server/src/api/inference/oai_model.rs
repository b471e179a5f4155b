//! Handler of `GET models/{model}` of the OpenAI API. An id has slashes, which paths of the API description can't
//! express.

use axum::extract::State;
use trainyard_wire::openai::ModelEntry;

use crate::api::request::extract::ApiPath;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::{Caller, Tenant};
use crate::inference::agents::Agent;
use crate::inference::openai;
use crate::state::AppState;

/// Returns a model that the field `model` may name, by its id.
pub(in crate::api) async fn oai_model(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    Caller(caller): Caller,
    ApiPath(model): ApiPath<String>,
) -> Reply<ModelEntry> {
    Ok(Answer(openai::model(&state, &tenant, Agent::of(&caller).as_ref(), &model).await?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::body::Body;
    use axum::http::{Method, Request};
    use serde_json::json;

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn a_model_is_found_by_its_id() {
        let server = Server::start().await;
        let run = server.run().await;
        let path = server.checkpoint(&run, 1, "sampler_weights", "a").await;
        let get = async |id: &str| server.call(Method::GET, &format!("/v1/models/{id}"), &[], Body::empty()).await;
        for id in [MODEL.to_owned(), MODEL.replace('/', "%2F")] {
            let found = get(&id).await.json();
            assert_eq!(
                (&found["id"], &found["object"], &found["root"]),
                (&json!(MODEL), &json!("model"), &json!(null))
            );
        }
        let found = get(&path).await.json();
        assert_eq!((&found["id"], &found["root"]), (&json!(path), &json!(MODEL)));
        assert!(found["created"].as_i64().unwrap() > 0);
        assert!(get("nobody/none").await.refused(404).contains("nobody/none"));
    }

    #[tokio::test]
    async fn programs_of_this_machine_need_no_key_of_a_server_without_keys() {
        let server = Server::start().await;
        let get = async |path: &str, headers: &[(&str, &str)]| {
            let mut request = Request::builder().uri(path);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            server.send(request.body(Body::empty()).unwrap()).await
        };
        let own = ("host", "localhost:8000");
        for key in ["Bearer EMPTY", "Bearer sk-1", "Bearer tml-x"] {
            get("/v1/models", &[own, ("authorization", key)]).await.json();
        }
        get("/v1/models", &[own]).await.json();
        get("/v1/models", &[own, ("x-api-key", "dummy")]).await.json();
        get("/v1/models", &[own, ("origin", "http://evil.example")]).await.refused(401);
        get("/v1/models", &[("host", "evil.example"), ("authorization", "Bearer EMPTY")]).await.refused(401);
        get("/v1/models", &[own, ("x-forwarded-for", "10.0.0.1")]).await.refused(403);
        get("/api/v1/get_server_capabilities", &[own, ("authorization", "Bearer EMPTY")]).await.refused(401);
        let keyed = Server::with(crate::state::Limits::default(), keys()).await;
        let request = Request::builder().uri("/v1/models").header("host", "localhost").body(Body::empty()).unwrap();
        keyed.send(request).await.refused(401);
    }

    fn keys() -> crate::auth::Keys {
        let digest = crate::auth::Keys::digest("tml-known");
        crate::auth::Keys::new(vec![(digest, trainyard_protocol::TenantId::new("alpha"))])
    }

    #[tokio::test]
    async fn refusals_name_the_path_that_was_called() {
        let server = Server::start().await;
        let call = async |method: Method, path: &str| server.call(method, path, &[], Body::empty()).await;
        let text = call(Method::GET, "/v1/embeddings").await.refused(404);
        assert!(text.contains("/v1/embeddings") && !text.contains("/oai/"), "{text}");
        let text = call(Method::DELETE, "/v1/chat/completions").await.refused(405);
        assert!(text.contains("/v1/chat/completions") && !text.contains("/oai/"), "{text}");
        assert!(call(Method::GET, "/oai/api/v1/embeddings").await.refused(404).contains("/oai/api/v1/embeddings"));
        let health = Request::builder().uri("/health").body(Body::empty()).unwrap();
        assert_ne!(server.send(health).await.status.as_u16(), 404);
    }
}

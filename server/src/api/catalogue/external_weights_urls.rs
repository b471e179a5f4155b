//! Handler of `GET training_runs/{run_id}/checkpoints/{kind}/{name}/external_weights_urls`.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::HeaderMap;
use serde_json::Value;
use trainyard_protocol::TinkerPath;
use trainyard_wire::timestamp::rfc3339;
use trainyard_wire::weights::ExternalUrlsResponse;

use super::download::{checkpoint_entry, encode_component};
use crate::api::request::extract::{ApiPath, checkpoint_path};
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::exports::is_of_weights;
use crate::signed_urls::Grant;
use crate::state::AppState;

/// Returns URLs of the files of a checkpoint's weights. The URLs contain their authorisation.
#[utoipa::path(
    get, path = "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}/external_weights_urls", tag = "catalogue",
    params(("run_id" = String, Path), ("kind" = String, Path), ("name" = String, Path)),
    responses((status = 200, description = "success", body = ExternalUrlsResponse), Refusals),
)]
pub(in crate::api) async fn external_weights_urls(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    headers: HeaderMap,
    ApiPath((run, kind, name)): ApiPath<(String, String, String)>,
) -> Reply<ExternalUrlsResponse> {
    let path = checkpoint_path(run, kind, name)?;
    let checkpoint = state.scheduler.checkpoint(&tenant, &path).await?;
    let base = base_url(&state, &headers)?;
    let end = state.clock.now().plus(state.limits.download_url_lifetime);
    let expires = end.as_millis() / 1_000;
    let mut urls = BTreeMap::new();
    for file in state.storage.files(&checkpoint.dir).await?.into_keys().filter(|file| is_of_weights(file)) {
        let grant = Grant { tenant: &tenant, object: &path.to_string(), file: &file, expires };
        let url = url(&state, &base, &path, grant);
        urls.insert(file, url);
    }
    let entry =
        checkpoint_entry(&tenant, &path, "checkpoint_urls_sign", "expires", Value::from(rfc3339(expires * 1_000)));
    state.scheduler.audit(entry).await?;
    Ok(Answer(ExternalUrlsResponse { urls, expires: rfc3339(expires * 1_000) }))
}

fn url(state: &AppState, base: &str, path: &TinkerPath, grant: Grant<'_>) -> String {
    format!(
        "{base}/api/v1/downloads/{}/{}/{}/{}?tenant={}&expires={}&signature={}",
        encode_component(path.run.as_str()),
        path.kind.segment(),
        path.name,
        encode_component(grant.file),
        encode_component(grant.tenant.as_str()),
        grant.expires,
        state.signer.sign(grant),
    )
}

/// Returns the address at which the client reaches this server: the configured one, or else the one in the headers of
/// the request, which proxies may have set.
pub(crate) fn base_url(state: &AppState, headers: &HeaderMap) -> Result<String, ApiError> {
    if let Some(url) = &state.public_url {
        return Ok(url.to_string());
    }
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).filter(|value| !value.is_empty());
    let host = text("x-forwarded-host").or_else(|| text("host"));
    let host = host.ok_or_else(|| ApiError::invalid("the header Host is missing"))?;
    let scheme = text("x-forwarded-proto").unwrap_or(if state.https { "https" } else { "http" });
    let prefix = text("x-forwarded-prefix").unwrap_or_default().trim_end_matches('/');
    Ok(format!("{scheme}://{host}{prefix}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::body::Body;
    use axum::http::{Method, Request};

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn urls_work_without_a_key_until_they_expire() {
        let server = Server::start().await;
        let run = server.run().await;
        server.checkpoint(&run, 1, "external_weights", "download").await;
        let got = server
            .get(&format!("training_runs/{run}/checkpoints/external_weights/download/external_weights_urls"))
            .await;
        let got = got.json();
        assert_eq!(got["expires"], "2023-11-14T23:13:20Z");
        let url = got["urls"]["adapter_model.safetensors"].as_str().unwrap();
        let path = url.strip_prefix("http://trainyard.test:8000").unwrap();
        let fetch = async |path: &str| server.send(Request::get(path).body(Body::empty()).unwrap()).await;
        let file = fetch(path).await;
        assert_eq!((file.status.as_u16(), &file.body[..]), (200, &b"weights"[..]));
        assert_eq!(file.headers["content-length"], "7");
        for (from, to) in [
            ("safetensors?", "bin?"),
            ("tenant=local", "tenant=other"),
            ("expires=1", "expires=2"),
            ("signature=", "signature=A"),
        ] {
            assert!(path.contains(from));
            fetch(&path.replace(from, to)).await.refused(403);
        }
        fetch(path.split('?').next().unwrap()).await.refused(403);
        server.clock.advance(3_600);
        fetch(path).await.refused(403);
    }

    #[tokio::test]
    async fn the_url_is_where_the_proxy_says() {
        let server = Server::start().await;
        let run = server.run().await;
        server.checkpoint(&run, 1, "external_weights", "x").await;
        let headers =
            [("x-forwarded-proto", "https"), ("x-forwarded-host", "y.example"), ("x-forwarded-prefix", "/t/")];
        let path = format!("/api/v1/training_runs/{run}/checkpoints/external_weights/x/external_weights_urls");
        let got = server.call(Method::GET, &path, &headers, Body::empty()).await.json();
        let url = got["urls"]["adapter_model.safetensors"].as_str().unwrap();
        assert!(url.starts_with("https://y.example/t/api/v1/downloads/"), "{url}");
    }

    #[tokio::test]
    async fn weights_of_every_kind_have_urls_and_an_optimizer_has_none() {
        let server = Server::start().await;
        let run = server.run().await;
        for (seq_id, kind) in [(1, "external_weights"), (2, "sampler_weights"), (3, "weights")] {
            let path = server.checkpoint(&run, seq_id, kind, "x").await;
            let folder = server.folder(&path).await;
            for file in ["optimizer.safetensors", "trainyard.json"] {
                std::fs::write(folder.join(file), "state").unwrap();
            }
            let of = format!("training_runs/{run}/checkpoints/{kind}/x/external_weights_urls");
            let urls = server.get(&of).await.json()["urls"].clone();
            let names: Vec<&String> = urls.as_object().unwrap().keys().collect();
            assert!(names.iter().any(|name| *name == "adapter_model.safetensors"), "{kind}: {names:?}");
            assert!(names.iter().all(|name| name.starts_with("adapter_")), "{kind}: {names:?}");
        }
        server.get(&format!("training_runs/{run}/checkpoints/weights/y/external_weights_urls")).await.refused(404);
    }
}

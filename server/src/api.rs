//! The HTTP API: one endpoint per file; each folder's `mod.rs` has a table of its endpoints.

mod admin;
mod agents;
mod catalogue;
mod client;
mod futures;
mod inference;
mod pages;
mod request;
mod sampling;
mod sessions;
#[cfg(test)]
pub(crate) mod tests;
mod training;
mod weights;

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::{any, get, put};
use utoipa::openapi::OpenApi;

use self::pages::{console, docs, health, index, missing};
pub(crate) use self::request::refusals::{Binary, Refusals};
use self::request::{extract, fallback};
use crate::auth::require_key;
use crate::bodies::answers;
use crate::endpoint::Endpoint;
use crate::endpoint::table::Group;
use crate::inference::error_form::in_own_form;
use crate::metrics::count;
use crate::state::AppState;

type ByPath = HashMap<&'static str, Vec<&'static Endpoint>>;

/// The folders' tables of endpoints.
const GROUPS: [Group; 10] = [
    admin::GROUP,
    agents::GROUP,
    catalogue::GROUP,
    client::GROUP,
    futures::GROUP,
    inference::GROUP,
    sampling::GROUP,
    sessions::GROUP,
    training::GROUP,
    weights::GROUP,
];

/// Returns all endpoints, as the tables describe them.
pub(crate) fn endpoints() -> impl Iterator<Item = &'static Endpoint> {
    GROUPS.into_iter().flat_map(|group| group.endpoints)
}

/// Returns the endpoint that serves a method on a route's path, if it is in a table.
fn find(method: &Method, path: &str) -> Option<&'static Endpoint> {
    static ALL: LazyLock<ByPath> = LazyLock::new(|| {
        let mut all = ByPath::new();
        for endpoint in endpoints() {
            all.entry(endpoint.path).or_default().push(endpoint);
        }
        all
    });
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    ALL.get(path)?.iter().copied().find(|endpoint| method.as_str().eq_ignore_ascii_case(endpoint.method))
}

/// Notes the endpoint of a request for the check of its key.
async fn note(mut request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>();
    let endpoint = path.and_then(|path| find(request.method(), path.as_str()));
    if let Some(endpoint) = endpoint {
        request.extensions_mut().insert(endpoint);
    }
    next.run(request).await
}

/// Returns the descriptions of all endpoints.
pub(crate) fn description() -> OpenApi {
    let mut whole = OpenApi::default();
    for group in GROUPS {
        whole.merge((group.describe)());
    }
    whole
}

fn keyed() -> Router<AppState> {
    GROUPS.into_iter().fold(Router::new(), |router, group| router.merge((group.keyed)()))
}

fn open() -> Router<AppState> {
    GROUPS.into_iter().fold(Router::new(), |router, group| router.merge((group.open)()))
}

/// Returns every endpoint of the API. All other paths and methods are refused in JSON.
pub fn router(state: AppState) -> Router {
    let counting = from_fn_with_state(state.clone(), count);
    let key_check = from_fn_with_state(state.clone(), require_key);
    let has_pages = state.console;
    let routes = keyed()
        // Checkpoint ids that lack their kind.
        .route("/api/v1/training_runs/{run_id}/checkpoints/{kind}", any(extract::incomplete_checkpoint_id))
        .route(
            "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}",
            put(extract::incomplete_checkpoint_id).post(extract::incomplete_checkpoint_id),
        )
        // The same by an id, which may have slashes.
        .route("/oai/api/v1/models/{*model}", get(inference::oai_model::oai_model))
        .merge(if state.console { console::keyed() } else { Router::new() })
        .route_layer(key_check)
        .route_layer(from_fn_with_state(state.answers.clone(), answers::count))
        .route_layer(from_fn(note))
        .merge(open())
        .merge(if state.console { console::open() } else { Router::new() })
        .route("/", get(index::index))
        .route("/docs", get(docs::to_page))
        .route("/docs/", get(docs::page))
        .route("/docs/{file}", get(docs::asset))
        .route("/healthz", get(client::healthz::healthz))
        // As other servers of the OpenAI API call it.
        .route("/health", get(client::healthz::healthz))
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .method_not_allowed_fallback(fallback::method_not_allowed)
        .fallback(fallback::not_supported)
        .layer(from_fn(fallback::close_unread))
        .layer(from_fn(in_own_form));
    let routes = if has_pages { routes.layer(from_fn(missing::as_page)) } else { routes };
    let routes = routes.layer(counting).with_state(state);
    // The outer router changes paths before the inner one matches them.
    Router::new().fallback_service(routes).layer(from_fn(fallback::rewrite_path))
}

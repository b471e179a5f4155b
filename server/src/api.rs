//! The HTTP API: one endpoint per file, and the table that joins them.

mod admin;
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

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{any, delete, get, post, put};

use self::pages::{console, docs, health, index};
pub(crate) use self::request::refusals::{Binary, Refusals};
use self::request::{extract, fallback};
use crate::auth::require_key;
use crate::bodies::answers;
use crate::inference::error_form::in_own_form;
use crate::metrics::count;
use crate::state::AppState;

/// One line per endpoint: its method, its path, its folder and file (and the handler of the same name). Routes and
/// document both come from here, so that neither can lack one. Keyed endpoints need an API key.
macro_rules! endpoints {
    (
        keyed { $($method:ident $path:literal $group:ident::$name:ident;)* }
        open { $($open_method:ident $open_path:literal $open_group:ident::$open_name:ident;)* }
    ) => {
        fn keyed() -> Router<AppState> {
            Router::new()$(.route($path, $method($group::$name::$name)))*
        }

        fn open() -> Router<AppState> {
            Router::new()$(.route($open_path, $open_method($open_group::$open_name::$open_name)))*
        }

        /// Collects the endpoints' descriptions.
        #[derive(utoipa::OpenApi)]
        #[openapi(paths($($group::$name::$name,)* $($open_group::$open_name::$open_name),*))]
        pub(crate) struct Endpoints;

        #[cfg(test)]
        const TABLE: &[(&str, &str)] = &[
            $((stringify!($method), $path),)*
            $((stringify!($open_method), $open_path)),*
        ];
    };
}

endpoints! {
    keyed {
        post "/api/v1/client/config" client::client_config;
        post "/api/v1/client/dynamic_config" client::client_dynamic_config;
        get "/api/v1/get_server_capabilities" client::get_server_capabilities;
        post "/api/v1/telemetry" client::telemetry;
        post "/api/v1/create_session" sessions::create_session;
        post "/api/v1/session_heartbeat" sessions::session_heartbeat;
        get "/api/v1/sessions" sessions::sessions;
        get "/api/v1/sessions/{session_id}" sessions::session;
        post "/api/v1/sessions/search" sessions::sessions_search;
        put "/api/v1/sessions/{session_id}/project" sessions::session_project;
        get "/api/v1/sessions/{session_id}/trace_export" sessions::trace_export;
        post "/api/v1/sessions/{session_id}/finish" sessions::session_finish;
        post "/api/v1/create_model" training::create_model;
        post "/api/v1/get_info" training::get_info;
        post "/api/v1/create_custom_loss" training::create_custom_loss;
        post "/api/v1/forward_backward" training::forward_backward;
        post "/api/v1/forward" training::forward;
        post "/api/v1/optim_step" training::optim_step;
        post "/api/v1/save_weights" weights::save_weights;
        post "/api/v1/save_weights_for_sampler" weights::save_weights_for_sampler;
        post "/api/v1/save_weights_external" weights::save_weights_external;
        post "/api/v1/load_weights" weights::load_weights;
        post "/api/v1/external_weights_upload_start" weights::external_weights_upload_start;
        post "/api/v1/external_weights_upload_finish" weights::external_weights_upload_finish;
        post "/api/v1/weights_info" weights::weights_info;
        post "/api/v1/create_sampling_session" sampling::create_sampling_session;
        post "/api/v1/copy_weights" weights::copy_weights;
        post "/api/v1/join_sampling_session" sampling::join_sampling_session;
        get "/api/v1/samplers/{sampler_id}" sampling::sampler;
        post "/api/v1/asample" sampling::asample;
        post "/api/v1/retrieve_future" futures::retrieve_future;
        post "/api/v1/retrieve_futures" futures::retrieve_futures;
        post "/api/v1/cancel_future" futures::cancel_future;
        get "/api/v1/training_runs" catalogue::training_runs;
        get "/api/v1/training_runs/{run_id}" catalogue::training_run;
        get "/api/v1/training_runs/{run_id}/checkpoints" catalogue::run_checkpoints;
        get "/api/v1/training_runs/{run_id}/metrics" catalogue::run_metrics;
        get "/api/v1/training_runs/{run_id}/metrics/export" catalogue::metrics_export;
        get "/api/v1/checkpoints" catalogue::checkpoints;
        post "/api/v1/checkpoints/search" catalogue::checkpoints_search;
        delete "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}" catalogue::checkpoint_delete;
        put "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}/ttl" catalogue::checkpoint_ttl;
        post "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}/publish" catalogue::checkpoint_publish;
        delete "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}/publish" catalogue::checkpoint_unpublish;
        get "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}/external_weights_urls" catalogue::external_weights_urls;
        post "/api/v1/auth/token" client::auth_token;
        get "/api/v1/auth/whoami" client::whoami;
        get "/api/v1/auth/apikey/me" client::own_key;
        delete "/api/v1/auth/apikey/me" client::own_key_revoke;
        get "/api/v1/audit" admin::audit;
        get "/api/v1/billing/usage/events" admin::billing_usage;
        get "/api/v1/billing/usage/checkpoints/current" admin::billing_storage;
        get "/api/v1/admin/usage.csv" admin::admin_usage_csv;
        get "/api/v1/admin/organisations" admin::admin_organisations;
        post "/api/v1/admin/organisations" admin::admin_create_organisation;
        put "/api/v1/admin/organisations/{organisation}" admin::admin_change_organisation;
        get "/api/v1/admin/organisations/{organisation}/limits" admin::admin_limits;
        put "/api/v1/admin/organisations/{organisation}/limits" admin::admin_change_limits;
        post "/api/v1/admin/signing_keys/rotate" admin::admin_rotate_signing;
        get "/api/v1/admin/projects" admin::admin_projects;
        post "/api/v1/admin/projects" admin::admin_create_project;
        delete "/api/v1/admin/projects/{project_id}" admin::admin_delete_project;
        get "/api/v1/admin/users" admin::admin_users;
        post "/api/v1/admin/users" admin::admin_create_user;
        put "/api/v1/admin/users/{email}" admin::admin_change_user;
        get "/api/v1/admin/keys" admin::admin_keys;
        post "/api/v1/admin/keys" admin::admin_create_key;
        delete "/api/v1/admin/keys/{key_id}" admin::admin_revoke_key;
        get "/oai/api/v1/models" inference::oai_models;
        post "/oai/api/v1/completions" inference::oai_completions;
        post "/oai/api/v1/chat/completions" inference::oai_chat_completions;
        post "/anthropic/api/v1/messages" inference::anthropic_messages;
        post "/anthropic/api/v1/messages/count_tokens" inference::anthropic_count_tokens;
    }
    open {
        get "/api/v1/healthz" client::healthz;
        get "/api/v1/downloads/{run_id}/{kind}/{name}/{file}" catalogue::download;
        put "/api/v1/uploads/{upload_id}/{file}" weights::upload_file;
        get "/api/v1/traces/{session_id}" sessions::trace_download;
        get "/.well-known/jwks.json" client::jwks;
        get "/openapi.json" client::openapi_json;
    }
}

/// Every endpoint of the API, with JSON refusals for all other paths and methods.
pub fn router(state: AppState) -> Router {
    let counting = from_fn_with_state(state.clone(), count);
    let key_check = from_fn_with_state(state.clone(), require_key);
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
        .layer(from_fn(in_own_form))
        .layer(counting)
        .with_state(state);
    // The outer router changes paths before the inner one matches them.
    Router::new().fallback_service(routes).layer(from_fn(fallback::rewrite_path))
}

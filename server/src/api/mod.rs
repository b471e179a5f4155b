//! The HTTP API: one endpoint per file, and the table that joins them.

mod base_name;
mod body;
mod body_memory;
mod extract;
mod fallback;
mod listing;
mod receive;
mod receive_pieces;
mod recorded;
mod respond;
mod submit;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

mod admin;
mod anthropic_count_tokens;
mod anthropic_messages;
mod asample;
mod auth_token;
mod cancel_future;
mod checkpoint_delete;
mod checkpoint_publish;
mod checkpoint_ttl;
mod checkpoint_unpublish;
mod checkpoints;
mod checkpoints_search;
mod client_config;
mod client_dynamic_config;
mod console;
mod content_range;
mod copy_weights;
mod create_custom_loss;
mod create_model;
mod create_sampling_session;
mod create_session;
mod docs;
mod download;
mod external_weights_upload_finish;
mod external_weights_upload_start;
mod external_weights_urls;
mod forward;
mod forward_backward;
mod get_info;
mod get_server_capabilities;
mod health;
mod healthz;
mod index;
mod join_sampling_session;
mod jwks;
mod load_weights;
mod measured;
mod oai_chat_completions;
mod oai_completions;
mod oai_models;
mod openapi_json;
mod optim_step;
mod own_key;
mod own_key_revoke;
mod retrieve_future;
mod retrieve_futures;
mod run_checkpoints;
mod sampler;
mod save_weights;
mod save_weights_external;
mod save_weights_for_sampler;
mod session;
mod session_finish;
mod session_heartbeat;
mod session_project;
mod sessions;
mod sessions_search;
mod telemetry;
mod trace_download;
mod trace_export;
mod training_run;
mod training_runs;
mod upload_file;
mod usage;
mod weights_access;
mod weights_info;
mod whoami;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{any, delete, get, post, put};

use self::admin::{
    admin_change_limits, admin_change_organisation, admin_change_user, admin_create_key, admin_create_organisation,
    admin_create_project, admin_create_user, admin_delete_project, admin_keys, admin_limits, admin_organisations,
    admin_projects, admin_revoke_key, admin_rotate_signing, admin_users, audit,
};
pub(crate) use self::body::DecodingBudget;
use self::measured::{metrics_export, run_metrics};
pub(crate) use self::receive::BodyBudget;
pub use self::receive::BodyLimits;
use self::usage::{admin_usage_csv, billing_storage, billing_usage};
use crate::auth::require_key;
use crate::inference::error_form::in_own_form;
use crate::metrics::count;
use crate::state::AppState;

/// One line per endpoint: its method, its path, its file (and the handler of the same name). Routes and
/// document both come from here, so that neither can lack one. Keyed endpoints need an API key.
macro_rules! endpoints {
    (
        keyed { $($method:ident $path:literal $name:ident;)* }
        open { $($open_method:ident $open_path:literal $open_name:ident;)* }
    ) => {
        fn keyed() -> Router<AppState> {
            Router::new()$(.route($path, $method($name::$name)))*
        }

        fn open() -> Router<AppState> {
            Router::new()$(.route($open_path, $open_method($open_name::$open_name)))*
        }

        /// Collects the endpoints' descriptions.
        #[derive(utoipa::OpenApi)]
        #[openapi(paths($($name::$name,)* $($open_name::$open_name),*))]
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
        post "/api/v1/client/config" client_config;
        post "/api/v1/client/dynamic_config" client_dynamic_config;
        get "/api/v1/get_server_capabilities" get_server_capabilities;
        post "/api/v1/telemetry" telemetry;
        post "/api/v1/create_session" create_session;
        post "/api/v1/session_heartbeat" session_heartbeat;
        get "/api/v1/sessions" sessions;
        get "/api/v1/sessions/{session_id}" session;
        post "/api/v1/sessions/search" sessions_search;
        put "/api/v1/sessions/{session_id}/project" session_project;
        get "/api/v1/sessions/{session_id}/trace_export" trace_export;
        post "/api/v1/sessions/{session_id}/finish" session_finish;
        post "/api/v1/create_model" create_model;
        post "/api/v1/get_info" get_info;
        post "/api/v1/create_custom_loss" create_custom_loss;
        post "/api/v1/forward_backward" forward_backward;
        post "/api/v1/forward" forward;
        post "/api/v1/optim_step" optim_step;
        post "/api/v1/save_weights" save_weights;
        post "/api/v1/save_weights_for_sampler" save_weights_for_sampler;
        post "/api/v1/save_weights_external" save_weights_external;
        post "/api/v1/load_weights" load_weights;
        post "/api/v1/external_weights_upload_start" external_weights_upload_start;
        post "/api/v1/external_weights_upload_finish" external_weights_upload_finish;
        post "/api/v1/weights_info" weights_info;
        post "/api/v1/create_sampling_session" create_sampling_session;
        post "/api/v1/copy_weights" copy_weights;
        post "/api/v1/join_sampling_session" join_sampling_session;
        get "/api/v1/samplers/{sampler_id}" sampler;
        post "/api/v1/asample" asample;
        post "/api/v1/retrieve_future" retrieve_future;
        post "/api/v1/retrieve_futures" retrieve_futures;
        post "/api/v1/cancel_future" cancel_future;
        get "/api/v1/training_runs" training_runs;
        get "/api/v1/training_runs/{run_id}" training_run;
        get "/api/v1/training_runs/{run_id}/checkpoints" run_checkpoints;
        get "/api/v1/training_runs/{run_id}/metrics" run_metrics;
        get "/api/v1/training_runs/{run_id}/metrics/export" metrics_export;
        get "/api/v1/checkpoints" checkpoints;
        post "/api/v1/checkpoints/search" checkpoints_search;
        delete "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}" checkpoint_delete;
        put "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}/ttl" checkpoint_ttl;
        post "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}/publish" checkpoint_publish;
        delete "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}/publish" checkpoint_unpublish;
        get "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}/external_weights_urls" external_weights_urls;
        post "/api/v1/auth/token" auth_token;
        get "/api/v1/auth/whoami" whoami;
        get "/api/v1/auth/apikey/me" own_key;
        delete "/api/v1/auth/apikey/me" own_key_revoke;
        get "/api/v1/audit" audit;
        get "/api/v1/billing/usage/events" billing_usage;
        get "/api/v1/billing/usage/checkpoints/current" billing_storage;
        get "/api/v1/admin/usage.csv" admin_usage_csv;
        get "/api/v1/admin/organisations" admin_organisations;
        post "/api/v1/admin/organisations" admin_create_organisation;
        put "/api/v1/admin/organisations/{organisation}" admin_change_organisation;
        get "/api/v1/admin/organisations/{organisation}/limits" admin_limits;
        put "/api/v1/admin/organisations/{organisation}/limits" admin_change_limits;
        post "/api/v1/admin/signing_keys/rotate" admin_rotate_signing;
        get "/api/v1/admin/projects" admin_projects;
        post "/api/v1/admin/projects" admin_create_project;
        delete "/api/v1/admin/projects/{project_id}" admin_delete_project;
        get "/api/v1/admin/users" admin_users;
        post "/api/v1/admin/users" admin_create_user;
        put "/api/v1/admin/users/{email}" admin_change_user;
        get "/api/v1/admin/keys" admin_keys;
        post "/api/v1/admin/keys" admin_create_key;
        delete "/api/v1/admin/keys/{key_id}" admin_revoke_key;
        get "/oai/api/v1/models" oai_models;
        post "/oai/api/v1/completions" oai_completions;
        post "/oai/api/v1/chat/completions" oai_chat_completions;
        post "/anthropic/api/v1/messages" anthropic_messages;
        post "/anthropic/api/v1/messages/count_tokens" anthropic_count_tokens;
    }
    open {
        get "/api/v1/healthz" healthz;
        get "/api/v1/downloads/{run_id}/{kind}/{name}/{file}" download;
        put "/api/v1/uploads/{upload_id}/{file}" upload_file;
        get "/api/v1/traces/{session_id}" trace_download;
        get "/.well-known/jwks.json" jwks;
        get "/openapi.json" openapi_json;
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
        .merge(if state.console { console::keyed() } else { Router::new() })
        .route_layer(key_check)
        .merge(open())
        .merge(if state.console { console::open() } else { Router::new() })
        .route("/", get(index::index))
        .route("/docs", get(docs::to_page))
        .route("/docs/", get(docs::page))
        .route("/docs/{file}", get(docs::asset))
        .route("/healthz", get(healthz::healthz))
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

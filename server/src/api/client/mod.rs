//! Endpoints that support a client's work: configuration, capabilities, keys and telemetry.

pub(super) mod auth_token;
pub(super) mod client_config;
pub(super) mod client_dynamic_config;
pub(super) mod get_server_capabilities;
pub(super) mod healthz;
pub(super) mod jwks;
pub(super) mod openapi_json;
pub(super) mod own_key;
pub(super) mod own_key_revoke;
pub(super) mod telemetry;
pub(super) mod whoami;

use crate::endpoint::table::endpoints;

endpoints! {
    keyed {
        post "/api/v1/client/config" client_config: Nothing, [];
        post "/api/v1/client/dynamic_config" client_dynamic_config: Nothing, [];
        get "/api/v1/get_server_capabilities" get_server_capabilities: Nothing, [];
        post "/api/v1/telemetry" telemetry: Nothing, [];
        post "/api/v1/auth/token" auth_token: Nothing, [];
        get "/api/v1/auth/whoami" whoami: Nothing, [];
        get "/api/v1/auth/apikey/me" own_key: Nothing, [];
        delete "/api/v1/auth/apikey/me" own_key_revoke: Nothing, [Missing];
    }
    open {
        get "/api/v1/healthz" healthz: [];
        get "/.well-known/jwks.json" jwks: [];
        get "/openapi.json" openapi_json: [];
    }
}

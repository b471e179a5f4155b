//! What a client asks before and beside its work: configuration, capabilities, keys, telemetry.

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

//! Tables of endpoints: one per folder of the API, in its `mod.rs`. Routes, descriptions, scopes and refusals follow from
//! them.

use axum::Router;
use utoipa::openapi::OpenApi;

use super::Endpoint;
use crate::state::AppState;

/// The endpoints of a folder.
pub(crate) struct Group {
    /// Returns the routes that require an API key.
    pub(crate) keyed: fn() -> Router<AppState>,
    /// Returns the routes that are open to all, or by the signature of their URL.
    pub(crate) open: fn() -> Router<AppState>,
    /// Returns the descriptions of all its endpoints.
    pub(crate) describe: fn() -> OpenApi,
    pub(crate) endpoints: &'static [Endpoint],
}

/// Declares the constant `GROUP` of a folder. A line is an endpoint: its method, its path, its file, whose handler has the
/// same name, and then, as variants of [`crate::endpoint`], what a key needs and the refusals.
macro_rules! endpoints {
    (
        keyed { $($method:ident $path:literal $name:ident: $needs:ident, [$($refusal:ident),*];)* }
        open { $($open_method:ident $open_path:literal $open_name:ident: [$($open_refusal:ident),*];)* }
    ) => {
        /// Collects the endpoints' descriptions.
        #[derive(utoipa::OpenApi)]
        #[openapi(paths($($name::$name,)* $($open_name::$open_name,)*))]
        struct Descriptions;

        /// Table of this folder's endpoints.
        pub(in crate::api) const GROUP: $crate::endpoint::table::Group = $crate::endpoint::table::Group {
            keyed: || axum::Router::new()$(.route($path, axum::routing::$method($name::$name)))*,
            open: || axum::Router::new()$(.route($open_path, axum::routing::$open_method($open_name::$open_name)))*,
            describe: <Descriptions as utoipa::OpenApi>::openapi,
            endpoints: &[
                $($crate::endpoint::Endpoint {
                    method: stringify!($method),
                    path: $path,
                    name: stringify!($name),
                    needs: $crate::endpoint::Needs::$needs,
                    refusals: &[$($crate::endpoint::Refusal::$refusal),*],
                },)*
                $($crate::endpoint::Endpoint {
                    method: stringify!($open_method),
                    path: $open_path,
                    name: stringify!($open_name),
                    needs: $crate::endpoint::Needs::Nothing,
                    refusals: &[$($crate::endpoint::Refusal::$open_refusal),*],
                },)*
            ],
        };
    };
}
pub(crate) use endpoints;

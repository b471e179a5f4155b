//! `GET /docs/` in a build without the page: an error that names the feature.

use crate::error::ApiError;
use crate::features;

pub(crate) async fn to_page() -> ApiError {
    features::DOCS_PAGE.into()
}

pub(crate) async fn page() -> ApiError {
    features::DOCS_PAGE.into()
}

pub(crate) async fn asset() -> ApiError {
    features::DOCS_PAGE.into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::body::Body;
    use axum::http::Request;

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn the_missing_page_is_explained() {
        let server = Server::start().await;
        for path in ["/docs", "/docs/", "/docs/index.css"] {
            let got = server.send(Request::get(path).body(Body::empty()).unwrap()).await;
            assert!(String::from_utf8_lossy(&got.body).contains("--features docs-page"), "{path}");
            got.refused(404);
        }
    }
}

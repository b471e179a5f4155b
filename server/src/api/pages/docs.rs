//! `GET /docs/`: the OpenAPI document as a page to read and try out. The binary contains all files of the page.

use std::sync::{Arc, LazyLock};

use axum::extract::Path;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use bytes::Bytes;
use utoipa_swagger_ui::Config;

use crate::error::ApiError;

/// Files of the page; the crate contains more builds of the same program.
const FILES: [(&str, &str); 8] = [
    ("index.html", "text/html; charset=utf-8"),
    ("index.css", "text/css; charset=utf-8"),
    ("swagger-ui.css", "text/css; charset=utf-8"),
    ("swagger-ui-bundle.js", "text/javascript; charset=utf-8"),
    ("swagger-ui-standalone-preset.js", "text/javascript; charset=utf-8"),
    ("swagger-initializer.js", "text/javascript; charset=utf-8"),
    ("favicon-16x16.png", "image/png"),
    ("favicon-32x32.png", "image/png"),
];

/// Policy that lets the page load from and call only this server, run only its own scripts, and not be embedded in
/// frames.
const POLICY: [(HeaderName, HeaderValue); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
    ),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
];

/// Configuration with paths relative to the page, so that it also works behind a proxy's path. No external validator is
/// used.
static CONFIG: LazyLock<Arc<Config<'static>>> = LazyLock::new(|| {
    let config = Config::new(["../openapi.json"]).use_base_layout().validator_url("none");
    Arc::new(config.doc_expansion("none").display_request_duration(true).query_config_enabled(false))
});

/// Redirects to the page's own folder, because its files are named relative to it.
pub(crate) async fn to_page() -> Redirect {
    Redirect::permanent("docs/")
}

/// Serves the page itself.
pub(crate) async fn page() -> Result<Response, ApiError> {
    file("index.html")
}

/// Serves a file that the page loads.
pub(crate) async fn asset(Path(name): Path<String>) -> Result<Response, ApiError> {
    file(&name)
}

fn file(name: &str) -> Result<Response, ApiError> {
    let missing = || ApiError::NotFound { what: "file", id: name.to_owned() };
    let (name, content_type) = FILES.into_iter().find(|(known, _)| *known == name).ok_or_else(missing)?;
    let found = utoipa_swagger_ui::serve(name, Arc::clone(&CONFIG));
    let found =
        found.map_err(|error| ApiError::Internal(format!("the page's {name}: {error}")))?.ok_or_else(missing)?;
    let content_type = [(header::CONTENT_TYPE, HeaderValue::from_static(content_type))];
    Ok((StatusCode::OK, content_type, POLICY, Bytes::from(found.bytes.into_owned())).into_response())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::body::Body;
    use axum::http::Request;

    use super::*;
    use crate::api::tests::testing::*;

    async fn get(server: &Server, path: &str) -> Got {
        server.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    /// The values of an attribute in a page.
    fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
        let parts = page.split(attribute).skip(1);
        parts.map(|rest| rest.strip_prefix("=\"").unwrap().split('"').next().unwrap()).collect()
    }

    #[tokio::test]
    async fn the_page_loads_files_of_this_server_alone() {
        let server = Server::start().await;
        let page = get(&server, "/docs/").await;
        let text = String::from_utf8(page.body.to_vec()).unwrap();
        assert!(!text.contains("<style") && !text.contains("style="), "the policy refuses styles in the page");
        let mut named = [values(&text, " src"), values(&text, " href")].concat();
        assert!(named.contains(&"./swagger-ui-bundle.js"));
        named.retain(|name| !name.is_empty());
        for name in &mut named {
            *name = name.strip_prefix("./").unwrap_or(name);
            assert!(FILES.iter().any(|(known, _)| known == name), "{name} is none of the page's files");
        }
        let of_page = FILES.map(|(name, _)| name).into_iter().filter(|name| *name != "index.html");
        assert_eq!(named.len(), of_page.clone().count());
        for name in of_page {
            let got = get(&server, &format!("/docs/{name}")).await;
            assert_eq!(got.status, 200, "{name}");
            assert_eq!(got.headers[header::CONTENT_SECURITY_POLICY], POLICY[0].1);
            assert!(got.body.len() > 100, "{name} is empty");
            if name.ends_with(".css") {
                let style = String::from_utf8(got.body.to_vec()).unwrap();
                assert!(!style.contains("@import"));
                let outside =
                    style.split("url(").skip(1).find(|url| !url.trim_start_matches(['"', '\'']).starts_with("data:"));
                assert_eq!(outside, None, "{name}");
            }
        }
    }

    #[tokio::test]
    async fn the_page_shows_the_document_of_this_server() {
        let server = Server::start().await;
        let script = get(&server, "/docs/swagger-initializer.js").await;
        let text = String::from_utf8(script.body.to_vec()).unwrap();
        assert!(text.contains(r#""url": "../openapi.json""#), "{text}");
        assert!(text.contains(r#""validatorUrl": "none""#) && text.contains(r#""layout": "BaseLayout""#), "{text}");
        assert!(!text.contains("://") && !text.contains("{{"), "{text}");
    }

    #[tokio::test]
    async fn other_files_are_not_found() {
        let server = Server::start().await;
        get(&server, "/docs/swagger-ui.js").await.refused(404);
        get(&server, "/docs/..%2Fopenapi.json").await.refused(404);
        let moved = get(&server, "/docs").await;
        assert_eq!(
            (moved.status.as_u16(), &moved.headers[header::LOCATION]),
            (308, &HeaderValue::from_static("docs/"))
        );
    }
}

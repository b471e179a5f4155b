//! The console's page and the files that it loads.

use std::sync::LazyLock;

use axum::extract::{Path, RawQuery};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use trainyard_protocol::hex;

use super::{bundle, login};
use crate::error::ApiError;
use crate::state::AppState;

const HTML: &str = "text/html; charset=utf-8";
const INDEX: &str = include_str!("../../../../console/index.html");
const MISSING: &str = include_str!("../../../../console/missing.html");
/// The attribute that contains the page's session.
const SESSION: &str = "<meta name=\"session\" content=\"";

/// A file that the page loads.
struct File {
    name: &'static str,
    content_type: &'static str,
    bytes: Bytes,
    /// Version, derived from the content.
    version: String,
}

static FILES: LazyLock<[File; 3]> = LazyLock::new(|| {
    let file = |name, content_type, text: &'static str| {
        let version = hex(&Sha256::digest(text)[..12]);
        File { name, content_type, bytes: Bytes::from_static(text.as_bytes()), version }
    };
    [
        file("app.js", "text/javascript; charset=utf-8", bundle::SCRIPT.as_str()),
        file("style.css", "text/css; charset=utf-8", include_str!("../../../../console/style.css")),
        file("icon.svg", "image/svg+xml", include_str!("../../../../console/icon.svg")),
    ]
});

/// The page before and after its session. It names files with their versions, so that browsers can cache them.
static PAGE: LazyLock<(String, String)> = LazyLock::new(|| {
    let html = with_versions(INDEX);
    let (before, behind) = html.split_once(SESSION).unwrap_or((&html, ""));
    (format!("{before}{SESSION}"), behind.to_owned())
});

/// Page of an address that does not exist, before and after the reason.
static MISSING_PAGE: LazyLock<(String, String)> = LazyLock::new(|| {
    let html = with_versions(MISSING);
    let (before, behind) = html.split_once("REASON").unwrap_or((&html, ""));
    (before.to_owned(), behind.to_owned())
});

/// Names the files with their versions.
fn with_versions(html: &str) -> String {
    FILES.iter().fold(html.to_owned(), |html, File { name, version, .. }| {
        html.replace(&format!("console/{name}\""), &format!("console/{name}?v={version}\""))
    })
}

/// Policy that lets the page load from and call only this server, run only its own script, and not be embedded in
/// frames.
const POLICY: [(HeaderName, HeaderValue); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
        ),
    ),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::VARY, HeaderValue::from_static("accept")),
];

/// Returns the page with the session of its browser, so that the page need not ask for it. Without a session, the page
/// asks for a key.
pub(in crate::api) async fn page(state: &AppState, headers: &HeaderMap) -> Response {
    let (before, behind) = &*PAGE;
    let (session, cookie) = match login::current(state, headers).await {
        Ok((session, cookie)) => (escaped(&session.to_string()), cookie),
        Err(_) => (String::new(), None),
    };
    let own = [
        (header::CONTENT_TYPE, HeaderValue::from_static(HTML)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    let mut response = (own, POLICY, format!("{before}{session}{behind}")).into_response();
    if let Some(cookie) = cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// Returns the page of an address that does not exist.
pub(in crate::api) fn missing_page(status: StatusCode, reason: &str) -> Response {
    let (before, behind) = &*MISSING_PAGE;
    let own = [
        (header::CONTENT_TYPE, HeaderValue::from_static(HTML)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (status, own, POLICY, format!("{before}{}{behind}", escaped(reason))).into_response()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Redirects to the page's one address.
pub(super) async fn to_page() -> Redirect {
    Redirect::permanent("/")
}

/// Serves a file that the page loads. Browsers may cache a file without limit if the request names its version.
pub(super) async fn asset(
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let found = FILES.iter().find(|file| file.name == name);
    let File { content_type, bytes, version, .. } = found.ok_or(ApiError::NotFound { what: "file", id: name })?;
    let is_named = query.and_then(|query| query.strip_prefix("v=").map(|asked| asked == version)).unwrap_or(false);
    let kept = if is_named { "public, max-age=31536000, immutable" } else { "no-cache" };
    let tag = format!("\"{version}\"");
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let own = [
        (header::ETAG, tag),
        (header::CONTENT_TYPE, (*content_type).to_owned()),
        (header::CACHE_CONTROL, kept.to_owned()),
    ];
    if is_known {
        return Ok((StatusCode::NOT_MODIFIED, own, POLICY).into_response());
    }
    Ok((StatusCode::OK, own, POLICY, bytes.clone()).into_response())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::body::Body;
    use axum::http::Request;
    use trainyard_protocol::TenantId;

    use super::*;
    use crate::api::tests::testing::*;
    use crate::auth::Keys;
    use crate::state::Limits;

    const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8");

    async fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> Got {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        server.send(request.body(Body::empty()).unwrap()).await
    }

    fn text(got: &Got) -> &str {
        std::str::from_utf8(&got.body).unwrap()
    }

    #[tokio::test]
    async fn browsers_get_the_page_and_programs_the_description() {
        let server = Server::start().await;
        let page = get(&server, "/", &[BROWSER, ("host", "localhost:8000")]).await;
        assert_eq!(page.headers[header::CONTENT_TYPE], HTML);
        assert_eq!(page.headers[header::CONTENT_SECURITY_POLICY], POLICY[0].1);
        assert_eq!(get(&server, "/", &[]).await.json()["console"], "/");
        // It comes with a session, and with the files that it names.
        assert!(text(&page).contains("&quot;organisation&quot;:&quot;local&quot;"), "{}", text(&page));
        let cookie = page.headers[header::SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
        let again = get(&server, "/", &[BROWSER, ("cookie", &cookie)]).await;
        assert!(!again.headers.contains_key(header::SET_COOKIE));
        let csrf =
            |got: &Got| text(got).split("csrf&quot;:&quot;").nth(1).unwrap().split('&').next().unwrap().to_owned();
        assert_eq!(csrf(&again), csrf(&page));
        for file in text(&page).split("\"console/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            let got = get(&server, &format!("/console/{file}"), &[]).await;
            assert_eq!(got.status, 200, "{file}");
            assert!(got.headers[header::CACHE_CONTROL].to_str().unwrap().ends_with("immutable"), "{file}");
        }
        // Where none may begin, it has none.
        let foreign = get(&server, "/", &[BROWSER, ("host", "evil.example")]).await;
        assert!(text(&foreign).contains(&format!("{SESSION}\">")) && !foreign.headers.contains_key(header::SET_COOKIE));
        let keys = Keys::new(vec![(Keys::digest("tml-acme-0123456789-0123456789"), TenantId::new("acme"))]);
        let keyed = Server::with(Limits::default(), keys).await;
        let stranger = get(&keyed, "/", &[BROWSER, ("host", "localhost:8000")]).await;
        assert!(
            text(&stranger).contains(&format!("{SESSION}\">")) && !stranger.headers.contains_key(header::SET_COOKIE)
        );
    }

    #[test]
    fn what_a_session_holds_stays_text() {
        assert_eq!(escaped(r#"{"name":"<b>&\"'"}"#), r"{&quot;name&quot;:&quot;&lt;b&gt;&amp;\&quot;'&quot;}");
    }

    #[tokio::test]
    async fn files_load_nothing_from_elsewhere_and_hold_no_inline_script() {
        let server = Server::start().await;
        for File { name, content_type, bytes, version } in FILES.iter() {
            let got = get(&server, &format!("/console/{name}"), &[]).await;
            assert_eq!(
                (got.status.as_u16(), got.headers[header::CONTENT_TYPE].to_str().unwrap()),
                (200, *content_type)
            );
            assert_eq!(got.body, *bytes);
            let tag = format!("\"{version}\"");
            assert_eq!(get(&server, &format!("/console/{name}"), &[("if-none-match", &tag)]).await.status, 304);
            let other = get(&server, &format!("/console/{name}?v=0"), &[]).await;
            assert_eq!(
                (other.status.as_u16(), &other.headers[header::CACHE_CONTROL]),
                (200, &HeaderValue::from_static("no-cache"))
            );
        }
        let files = FILES.iter().map(|file| (file.name, std::str::from_utf8(&file.bytes).unwrap()));
        for (name, text) in files.chain([("index.html", INDEX), ("missing.html", MISSING)]) {
            for forbidden in ["innerHTML", "eval(", "@import", "style=\"", " onclick="] {
                assert!(!text.contains(forbidden), "{name}: {forbidden}");
            }
            let outside = text.replace("http://www.w3.org/", "").replace("tinker://", "");
            assert!(!outside.contains("://"), "{name} names another host");
        }
        get(&server, "/console/..%2findex.html", &[]).await.refused(404);
    }
}

//! Answers to browsers that ask for a page that does not exist.

use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use super::console;
use super::index::accepts_pages;
use crate::error::Detail;

/// Path prefixes of interfaces for programs, which answer in JSON whatever a client accepts.
const PROGRAMS: [&str; 6] = ["/api/", "/oai/", "/anthropic/", "/v1/", "/.well-known/", "/openapi.json"];

/// Shows a page instead of a refusal in JSON to a browser that follows a wrong address of the console.
pub(crate) async fn as_page(request: Request, next: Next) -> Response {
    let is_for_people = matches!(*request.method(), Method::GET | Method::HEAD)
        && accepts_pages(request.headers())
        && !PROGRAMS.iter().any(|prefix| request.uri().path().starts_with(prefix));
    let response = next.run(request).await;
    if !is_for_people || ![StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED].contains(&response.status()) {
        return response;
    }
    match response.extensions().get::<Detail>() {
        Some(Detail(reason)) => {
            let mut page = console::missing_page(response.status(), reason);
            if let Some(methods) = response.headers().get(header::ALLOW) {
                page.headers_mut().insert(header::ALLOW, methods.clone());
            }
            page
        }
        None => response,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::body::Body;
    use axum::http::HeaderValue;

    use super::*;
    use crate::api::tests::testing::*;

    const BROWSER: &str = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8";

    async fn get(server: &Server, path: &str, accept: &str) -> Got {
        server.send(Request::get(path).header(header::ACCEPT, accept).body(Body::empty()).unwrap()).await
    }

    #[tokio::test]
    async fn browsers_get_a_page_and_programs_json() {
        let server = Server::start().await;
        for (path, status) in [
            ("/nothing", 404),
            ("/runs/a/b/c", 404),
            ("/console/nothing.js", 404),
            ("/console/<b>", 404),
            ("/console/login", 405),
        ] {
            let path = path.replace('<', "%3C").replace('>', "%3E");
            let page = get(&server, &path, BROWSER).await;
            let text = std::str::from_utf8(&page.body).unwrap();
            assert_eq!(
                (page.status.as_u16(), &page.headers[header::CONTENT_TYPE]),
                (status, &HeaderValue::from_static("text/html; charset=utf-8")),
                "{path}"
            );
            assert!(page.headers.contains_key(header::CONTENT_SECURITY_POLICY), "{path}");
            assert!(text.contains("href=\"/#/runs\"") && !text.contains("<b>") && !text.contains("REASON"), "{text}");
            for file in text.split("\"/console/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
                assert_eq!(get(&server, &format!("/console/{file}"), "*/*").await.status, 200, "{file}");
            }
            get(&server, &path, "application/json").await.refused(status);
        }
        for path in ["/api/v1/nothing", "/oai/api/v1/nothing", "/v1/nothing"] {
            get(&server, path, BROWSER).await.refused(404);
        }
    }
}

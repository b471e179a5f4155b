//! Programs of this machine that call the compatible APIs of a server without keys. They send `EMPTY`, a key of another
//! service, or none.

use axum::http::HeaderMap;
use axum::http::header::ORIGIN;

use super::browser::names_this_machine;

/// Path prefixes of the compatible APIs.
const COMPATIBLE: [&str; 2] = ["/oai/api/v1/", "/anthropic/api/v1/"];

/// Returns whether the path of a route belongs to the compatible APIs.
pub(super) fn is_compatible(path: &str) -> bool {
    COMPATIBLE.iter().any(|prefix| path.starts_with(prefix))
}

/// Returns whether a request may be served although it has no key of this service. A page that a browser shows may send
/// requests to this machine too, but it can't set the headers of a key, and it can't leave out where it comes from.
pub(super) fn is_accepted(path: &str, headers: &HeaderMap) -> bool {
    is_compatible(path) && names_this_machine(headers) && !headers.contains_key(ORIGIN)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use axum::http::header::HOST;

    use super::*;

    #[test]
    fn pages_and_other_apis_need_a_key() {
        let headers = |host: &'static str| HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
        assert!(is_accepted("/oai/api/v1/models", &headers("127.0.0.1:8000")));
        assert!(is_accepted("/anthropic/api/v1/messages", &headers("localhost:8000")));
        assert!(!is_accepted("/api/v1/create_session", &headers("localhost:8000")));
        assert!(!is_accepted("/oai/api/v1/models", &headers("evil.example:8000")));
        assert!(!is_accepted("/oai/api/v1/models", &HeaderMap::new()));
        let mut page = headers("localhost:8000");
        page.insert(ORIGIN, HeaderValue::from_static("http://localhost:8000"));
        assert!(!is_accepted("/oai/api/v1/models", &page));
    }
}

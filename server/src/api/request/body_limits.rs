//! Bounds on the bodies of endpoints, in one table.

use trainyard_protocol::OpError;
use trainyard_wire::json;

use crate::budgets::{SESSION_WHILE_ALMOST_FULL, SMALL_BODY_BYTES, TEXT_BODY_BYTES, WORK_WHILE_ALMOST_FULL};

/// What a body contains, which bounds its size and the number of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// Tokens and tensors: as large as the server accepts. Lists in the body have bounds of their own.
    Data,
    Text,
    /// Ids, names and settings.
    Fields,
}

/// Bounds on a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BodyBounds {
    content: Content,
    /// The largest body that is accepted while a disk is almost full, in bytes, where the body is stored. Endpoints that
    /// create runs or save are refused then, whatever the size.
    while_almost_full: Option<usize>,
}

/// Bounds of all endpoints that the table does not name.
const OTHERS: BodyBounds = BodyBounds { content: Content::Fields, while_almost_full: None };

const fn work(content: Content) -> BodyBounds {
    BodyBounds { content, while_almost_full: Some(WORK_WHILE_ALMOST_FULL) }
}

const fn session() -> BodyBounds {
    BodyBounds { content: Content::Fields, while_almost_full: Some(SESSION_WHILE_ALMOST_FULL) }
}

/// Endpoints with large or stored bodies.
const ENDPOINTS: [(&str, BodyBounds); 12] = [
    ("/api/v1/asample", work(Content::Data)),
    ("/api/v1/forward", work(Content::Data)),
    ("/api/v1/forward_backward", work(Content::Data)),
    ("/oai/api/v1/completions", work(Content::Text)),
    ("/oai/api/v1/chat/completions", work(Content::Text)),
    ("/oai/api/v1/responses", work(Content::Text)),
    ("/anthropic/api/v1/messages", work(Content::Text)),
    ("/anthropic/api/v1/messages/count_tokens", BodyBounds { content: Content::Text, while_almost_full: None }),
    ("/api/v1/create_session", session()),
    ("/api/v1/create_sampling_session", session()),
    ("/api/v1/create_custom_loss", session()),
    ("/api/v1/copy_weights", session()),
];

impl BodyBounds {
    /// Returns the bounds of the endpoint with this path.
    pub(super) fn of(path: &str) -> Self {
        ENDPOINTS.iter().find(|(name, _)| *name == path).map_or(OTHERS, |(_, bounds)| *bounds)
    }

    /// The maximum size of a body, before and after decompression, where `most` is the largest of all.
    pub(super) fn bytes(self, most: usize) -> usize {
        match self.content {
            Content::Data => most,
            Content::Text => most.min(TEXT_BODY_BYTES),
            Content::Fields => most.min(SMALL_BODY_BYTES),
        }
    }

    /// Returns whether a body of this size needs space on a disk.
    pub(super) fn needs_space(self, bytes: usize) -> bool {
        self.while_almost_full.is_some_and(|small| bytes > small)
    }

    /// Refuses a JSON body with too many values, without reading them.
    ///
    /// # Errors
    /// A user error with the bound.
    pub(super) fn check_values(self, body: &[u8]) -> Result<(), OpError> {
        match self.content {
            Content::Data => Ok(()),
            Content::Text | Content::Fields => json::check_values(body, json::MAX_VALUES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::endpoints;
    use crate::endpoint::Endpoint;

    #[test]
    fn only_bodies_of_data_are_large() {
        for (path, most) in [
            ("/api/v1/forward_backward", 1 << 30),
            ("/api/v1/asample", 1 << 30),
            ("/oai/api/v1/chat/completions", 16 << 20),
            ("/oai/api/v1/responses", 16 << 20),
            ("/anthropic/api/v1/messages/count_tokens", 16 << 20),
            ("/api/v1/retrieve_futures", 4 << 20),
            ("/api/v1/unheard_of", 4 << 20),
        ] {
            assert_eq!(BodyBounds::of(path).bytes(1 << 30), most, "{path}");
            assert_eq!(BodyBounds::of(path).bytes(100), 100);
        }
    }

    #[test]
    fn only_bodies_of_data_have_any_number_of_values() {
        let body = vec![b','; json::MAX_VALUES + 1];
        assert!(BodyBounds::of("/api/v1/forward").check_values(&body).is_ok());
        for path in ["/oai/api/v1/completions", "/api/v1/create_session", "/api/v1/telemetry"] {
            assert!(BodyBounds::of(path).check_values(&body[1..]).is_ok());
            assert!(BodyBounds::of(path).check_values(&body).is_err(), "{path}");
        }
    }

    #[test]
    fn every_path_of_the_table_is_an_endpoint() {
        for (path, _) in ENDPOINTS {
            let is_it = |endpoint: &Endpoint| endpoint.method == "post" && endpoint.path == path;
            assert!(endpoints().any(is_it), "{path}");
        }
    }
}

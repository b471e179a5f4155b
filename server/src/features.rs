//! Cargo features that a build may lack. Releases have all of them.

/// A part of the program that this build does not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this build has no {what}: build trainyard-server with `--features {feature}`")]
pub struct NotInBuild {
    what: &'static str,
    feature: &'static str,
}

/// The computation on GPUs.
#[cfg(not(feature = "cuda"))]
pub const CUDA: NotInBuild = NotInBuild { what: "support for GPUs", feature: "cuda" };

/// The page that shows the API's description.
#[cfg(not(feature = "docs-page"))]
pub const DOCS_PAGE: NotInBuild =
    NotInBuild { what: "page for the API's description, which is at /openapi.json", feature: "docs-page" };

/// The export of traces.
#[cfg(not(feature = "otlp"))]
pub const OTLP: NotInBuild = NotInBuild { what: "export of traces", feature: "otlp" };

/// The command `trainyard top`.
#[cfg(not(feature = "top"))]
pub const TOP: NotInBuild = NotInBuild { what: "`trainyard top`", feature: "top" };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_and_how_to_get_it_is_told() {
        let missing = NotInBuild { what: "wheels", feature: "round" };
        assert_eq!(missing.to_string(), "this build has no wheels: build trainyard-server with `--features round`");
    }
}

//! Pages and probes that are not part of the described API: health, documentation, the console.

pub(crate) mod console;
#[cfg_attr(not(feature = "docs-page"), path = "docs_missing.rs")]
pub(crate) mod docs;
pub(crate) mod health;
pub(crate) mod index;
pub(crate) mod missing;

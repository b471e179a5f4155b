//! Pages and probes that are not part of the described API: health, documentation, the console.

pub(crate) mod console;
pub(crate) mod docs;
pub(crate) mod health;
pub(crate) mod index;

//! Mutated inputs, as the server's decoders get them (`server/src/wire/fuzz`).
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../../server/src/wire/fuzz/mutate.rs"]
pub(crate) mod mutate;
#[path = "../../server/src/wire/fuzz/values.rs"]
mod values;

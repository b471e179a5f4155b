// Generated from openapi/openapi.json by `make sdk`; not for editing.

//! What is generated from the API's description.

pub mod administration;
pub mod agents;
mod anthropic;
pub mod catalogue;
mod client;
mod futures;
mod openai;
mod operations;
mod sampling;
pub mod sessions;
mod training;
pub mod weights;
pub mod types;

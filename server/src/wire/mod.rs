//! What travels over HTTP: protobuf messages, JSON bodies, and their conversion to and from the
//! protocol crate's operations and results.

pub mod anthropic;
mod bounds;
pub mod catalogue;
pub mod client;
pub mod futures;
pub mod json;
pub mod model_input;
pub mod models;
mod numbers;
pub mod openai;
mod parts;
pub mod proto;
pub mod results;
pub mod sampling;
pub mod sessions;
pub mod tensor;
pub mod timestamp;
pub mod training;
pub mod weights;

//! Types that travel over HTTP: protobuf messages, JSON bodies, and their conversion to and from the protocol crate's
//! operations and results.

pub mod admin;
pub mod agents;
pub mod anthropic;
pub mod auth;
mod bounds;
pub mod catalogue;
pub mod checkpoint_search;
pub mod client;
pub mod copies;
pub mod custom_loss;
pub mod futures;
pub mod images;
pub mod json;
pub mod limits;
pub mod lists;
pub mod model_input;
pub mod models;
mod numbers;
pub mod openai;
pub mod overview;
mod parts;
pub mod payload;
pub mod proto;
pub mod provenance;
pub mod results;
pub mod run_metrics;
pub mod sampling;
pub mod session_search;
pub mod sessions;
pub mod tensor;
pub mod timestamp;
pub mod training;
pub mod uploads;
pub mod usage;
pub mod weights;

use crate::config::LoadError;
use std::sync::Arc;
use trainyard_protocol::{OpError, Stop};
pub struct Detokenizer;
impl Detokenizer {
    pub fn from_json(_: &[u8]) -> Result<Self, LoadError> {
        Ok(Self)
    }
}
#[derive(Clone)]
pub struct StopMatcher(Vec<u32>);
impl StopMatcher {
    pub fn new(stop: &Stop, eos: &[u32], _d: Option<&Arc<Detokenizer>>) -> Result<Self, OpError> {
        Ok(Self(if *stop == Stop::Nothing { vec![] } else { eos.to_vec() }))
    }
    pub fn push(&mut self, token: u32) -> bool {
        self.0.contains(&token)
    }
}

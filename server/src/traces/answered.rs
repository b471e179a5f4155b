//! A call of the API that was answered.

use std::time::SystemTime;

use crate::calls::Call;

#[cfg_attr(not(feature = "otlp"), allow(dead_code, reason = "only traces read it"))]
pub(crate) struct AnsweredCall<'a> {
    pub(crate) call: &'a Call,
    pub(crate) method: &'static str,
    /// The path as in the table of endpoints.
    pub(crate) route: &'a str,
    /// The path as the client sent it.
    pub(crate) path: String,
    pub(crate) status: u16,
    pub(crate) started: SystemTime,
}

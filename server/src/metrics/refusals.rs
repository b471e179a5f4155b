//! Log lines about requests that were refused or failed.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::response::Response;
use trainyard_protocol::TenantId;

use super::http::Endpoint;
use crate::calls::Call;
use crate::error::Reason;

/// The period in which an endpoint gets [`LINES`] lines for each status.
const PERIOD: Duration = Duration::from_secs(5);
const LINES: u64 = 10;

/// Logs refusals, and the number of lines that were left out.
#[derive(Debug, Default)]
pub(super) struct RefusalLog(Mutex<BTreeMap<(Endpoint, u16), Window>>);

#[derive(Debug)]
struct Window {
    start: Instant,
    seen: u64,
}

impl RefusalLog {
    /// Logs an answer with a status from 400.
    pub(super) fn log(
        &self,
        method: &'static str,
        endpoint: &Endpoint,
        response: &Response,
        call: Option<&Call>,
        started: Instant,
    ) {
        let status = response.status().as_u16();
        let Some(omitted) = self.admit(endpoint, status, Instant::now()) else { return };
        let omitted = (omitted > 0).then_some(omitted);
        let tenant = response.extensions().get::<TenantId>().map(ToString::to_string);
        let reason = response.extensions().get::<Reason>().map(|reason| reason.0.as_str());
        let id = call.map(|call| &*call.origin.call);
        let trace_id = call.map(|call| call.origin.trace.trace_id());
        let took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        if status >= 500 {
            tracing::warn!(
                method, route = %endpoint, status, tenant, x_request_id = id, trace_id, reason, took_ms, omitted,
                "request failed"
            );
        } else {
            tracing::info!(
                method, route = %endpoint, status, tenant, x_request_id = id, trace_id, reason, took_ms, omitted,
                "request refused"
            );
        }
    }

    /// Returns how many lines were left out before this one; `None` if this one is left out too.
    fn admit(&self, endpoint: &Endpoint, status: u16, now: Instant) -> Option<u64> {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (Endpoint::clone(endpoint), status);
        let window = windows.entry(key).or_insert(Window { start: now, seen: 0 });
        let mut omitted = 0;
        if now.duration_since(window.start) >= PERIOD {
            omitted = window.seen.saturating_sub(LINES);
            *window = Window { start: now, seen: 0 };
        }
        window.seen += 1;
        (window.seen <= LINES).then_some(omitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_is_a_few_lines_and_a_number() {
        let log = RefusalLog::default();
        let (endpoint, start) = (Endpoint::from("/api/v1/asample"), Instant::now());
        let lines = |now| (0..100).filter_map(|_| log.admit(&endpoint, 429, now)).collect::<Vec<_>>();
        assert_eq!(lines(start), [0; 10]);
        assert_eq!(log.admit(&endpoint, 400, start), Some(0));
        assert_eq!(lines(start + PERIOD), [90, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}

//! Converts between the scheduler's limits and those of the API.

use std::num::NonZeroU64;

use trainyard_protocol::TenantId;
use trainyard_scheduler::{Limit, LimitChanges, LimitOutOfRange, Policies, TenantLimits};
use trainyard_wire::limits::{ChangeLimitsRequest, LimitOrigin, LimitValue, LimitsResponse};

use crate::error::ApiError;

/// Returns the limits of a tenant: those of the configuration file take precedence over those of the store, and both
/// over the server's defaults.
pub(super) fn response(tenant: &TenantId, file: &Policies, stored: &TenantLimits) -> LimitsResponse {
    let found = |limit: Limit| {
        let seeded = file.seed(tenant).and_then(|seed| seed.get(limit)).map(|value| (value, LimitOrigin::File));
        match seeded.or_else(|| stored.get(limit).map(|value| (value, LimitOrigin::Store))) {
            Some((value, origin)) => LimitValue { value: Some(value.get()), origin },
            None => {
                let value = file.default_policy().get(limit).map(NonZeroU64::get);
                LimitValue { value, origin: LimitOrigin::Default }
            }
        }
    };
    LimitsResponse {
        weight: found(Limit::Weight),
        max_runs: found(Limit::MaxRuns),
        max_queued_tokens: found(Limit::MaxQueuedTokens),
        tokens_per_minute: found(Limit::TokensPerMinute),
        max_storage_bytes: found(Limit::MaxStorageBytes),
        max_queued_requests: found(Limit::MaxQueuedRequests),
        max_queued_bytes: found(Limit::MaxQueuedBytes),
        max_queued_samples: found(Limit::MaxQueuedSamples),
        max_sessions: found(Limit::MaxSessions),
        pixels_per_minute: found(Limit::PixelsPerMinute),
    }
}

/// Returns the changes that a request asks for.
///
/// # Errors
///
/// [`ApiError::Invalid`] with the name of a limit whose value is out of range.
pub(super) fn changes(request: &ChangeLimitsRequest) -> Result<LimitChanges, ApiError> {
    let asked = |limit: Limit| match limit {
        Limit::Weight => request.weight,
        Limit::MaxRuns => request.max_runs,
        Limit::MaxQueuedTokens => request.max_queued_tokens,
        Limit::TokensPerMinute => request.tokens_per_minute,
        Limit::MaxStorageBytes => request.max_storage_bytes,
        Limit::MaxQueuedRequests => request.max_queued_requests,
        Limit::MaxQueuedBytes => request.max_queued_bytes,
        Limit::MaxQueuedSamples => request.max_queued_samples,
        Limit::MaxSessions => request.max_sessions,
        Limit::PixelsPerMinute => request.pixels_per_minute,
    };
    let check = |(limit, value): (Limit, Option<u64>)| {
        let value: Option<NonZeroU64> = value.map(|value| limit.value(value)).transpose()?;
        Ok((limit, value))
    };
    let changes = Limit::ALL.iter().filter_map(|limit| Some((*limit, asked(*limit)?))).map(check);
    changes.collect::<Result<_, LimitOutOfRange>>().map_err(|error| ApiError::Invalid(error.to_string()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use trainyard_scheduler::TenantPolicy;
    use trainyard_wire::json;

    use super::*;

    #[test]
    fn defaults_in_force_are_shown() {
        let (tenant, of_file) = (TenantId::new("acme"), [(Limit::MaxRuns, NonZeroU64::MIN)]);
        let default = TenantPolicy { tokens_per_minute: NonZeroU64::new(60), ..TenantPolicy::default() };
        let file = Policies::new(default, [(tenant.clone(), of_file.into_iter().collect())].into());
        let stored = [(Limit::Weight, NonZeroU64::MIN)].into_iter().collect();
        let found = response(&tenant, &file, &stored);
        let set = |value, origin| LimitValue { value: Some(value), origin };
        assert_eq!((found.max_runs, found.weight), (set(1, LimitOrigin::File), set(1, LimitOrigin::Store)));
        assert_eq!(found.tokens_per_minute, set(60, LimitOrigin::Default));
        assert_eq!(found.max_queued_requests, set(default.training.requests.get(), LimitOrigin::Default));
        assert_eq!(found.max_queued_bytes, set(default.training.bytes.get(), LimitOrigin::Default));
        assert_eq!(found.max_storage_bytes, LimitValue { value: None, origin: LimitOrigin::Default });
    }

    fn asked(body: &str) -> Result<LimitChanges, String> {
        let request = json::parse::<ChangeLimitsRequest>(body.as_bytes()).map_err(|error| error.message)?;
        changes(&request).map_err(|error| error.to_string())
    }

    #[test]
    fn null_unsets_and_what_is_absent_stays() {
        let found = asked(r#"{"max_runs": 3, "weight": null}"#).unwrap();
        assert_eq!(found, [(Limit::MaxRuns, NonZeroU64::new(3)), (Limit::Weight, None)].into());
        assert!(asked("{}").unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_with_a_limit_is_named() {
        for (body, message) in [
            (r#"{"weight": 0}"#, "weight: must be from 1 to 1000, not 0"),
            (r#"{"weight": 1001}"#, "weight: must be from 1 to 1000, not 1001"),
            (r#"{"max_runs": 9223372036854775808}"#, "max_runs: must be from 1 to 9223372036854775807, not"),
            (r#"{"max_runs": -1}"#, "max_runs: invalid value"),
            (r#"{"max_runs": "3"}"#, "max_runs: invalid type"),
            (r#"{"max_run": 3}"#, "unknown field `max_run`"),
        ] {
            let refused = asked(body).unwrap_err();
            assert!(refused.contains(message), "{refused}");
        }
    }
}

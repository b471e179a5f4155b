//! Conversions between the scheduler's limits and those of the wire.

use std::num::NonZeroU64;

use trainyard_protocol::TenantId;
use trainyard_scheduler::{Limit, LimitChanges, LimitOutOfRange, Policies, TenantLimits};
use trainyard_wire::limits::{ChangeLimitsRequest, LimitOrigin, LimitValue, LimitsResponse};

use crate::error::ApiError;

/// The limits of a tenant, from the limits in the store and those in the configuration file.
pub(super) fn response(tenant: &TenantId, file: &Policies, stored: &TenantLimits) -> LimitsResponse {
    let found = |limit: Limit| {
        let seeded = file.seed(tenant).and_then(|seed| seed.get(limit)).map(|value| (value, LimitOrigin::File));
        match seeded.or_else(|| stored.get(limit).map(|value| (value, LimitOrigin::Store))) {
            Some((value, origin)) => LimitValue { value: Some(value.get()), origin },
            None => LimitValue { value: None, origin: LimitOrigin::Default },
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
    }
}

/// The changes in a request.
///
/// # Errors
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
    use trainyard_wire::json;

    use super::*;

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

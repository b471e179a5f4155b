//! Handler of `GET billing/usage/events`.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use trainyard_protocol::SessionId;
use trainyard_scheduler::{Attribution, HourlyUsage};
use trainyard_wire::json;
use trainyard_wire::timestamp::rfc3339;
use trainyard_wire::usage::{UsageEvent, UsageInfo, UsageQuery, UsageResponse, UsageSession};

use super::period::{self, HOUR};
use super::storage;
use crate::api::admin::organisation;
use crate::api::request::extract::ApiQuery;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Caller;
use crate::state::AppState;

/// Returns what an organisation used, by hour, session and kind; for admins. Tokens count in the hour in which their
/// request ended. Saved checkpoints and storage count too. The service knows no prices.
#[utoipa::path(
    get, path = "/api/v1/billing/usage/events", tag = "administration", params(UsageQuery),
    responses((status = 200, description = "success", body = UsageResponse), Refusals),
)]
pub(in crate::api) async fn billing_usage(
    State(state): State<AppState>,
    Caller(caller): Caller,
    ApiQuery(query): ApiQuery<UsageQuery>,
) -> Reply<UsageResponse> {
    let now = state.clock.now();
    let (from, to) = period::read(&query, now)?;
    let organisation = organisation(&caller, query.organisation)?;
    let mut data = Vec::new();
    for hour in state.scheduler.hourly_usage(&organisation, from, to).await? {
        data.extend(of_requests(&hour));
    }
    let stored = state.scheduler.stored_checkpoints(&organisation, from, to).await?;
    for ((hour, of), found) in storage::by_hour(stored, from, to, now) {
        if found.saved > 0 {
            data.push(event(hour, &of, UsageInfo::Checkpoint { count: found.saved }));
        }
        if found.gigabyte_hours > 0.0 {
            data.push(event(hour, &of, UsageInfo::Storage { gigabyte_hours: found.gigabyte_hours }));
        }
    }
    data.sort_by(|a, b| (&a.bucket_start, b.event_info.tokens()).cmp(&(&b.bucket_start, a.event_info.tokens())));
    let ids: BTreeSet<&str> = data.iter().map(|event| event.session_id.as_str()).collect();
    let ids: Vec<SessionId> = ids.into_iter().map(SessionId::new).collect();
    let mut sessions = BTreeMap::new();
    for (session, metadata) in state.scheduler.metadata_of_sessions(&organisation, &ids).await? {
        let metadata: json::Metadata = serde_json::from_value(metadata).unwrap_or_default();
        sessions.insert(session.to_string(), UsageSession { user_metadata: json::text_metadata(&metadata) });
    }
    Ok(Answer(UsageResponse { data, sessions }))
}

fn of_requests(hour: &HourlyUsage) -> Vec<UsageEvent> {
    let tokens = &hour.tokens;
    let kinds = [
        UsageInfo::Training { token_count: tokens.trained },
        UsageInfo::SamplingPrefill { cached: false, token_count: tokens.prefill },
        UsageInfo::SamplingPrefill { cached: true, token_count: tokens.cached },
        UsageInfo::SamplingSample { token_count: tokens.sampled },
    ];
    let used = kinds.into_iter().filter(|info| info.tokens() > 0);
    used.map(|info| event(hour.hour.as_millis(), &hour.of, info)).collect()
}

fn event(hour: i64, of: &Attribution, event_info: UsageInfo) -> UsageEvent {
    UsageEvent {
        bucket_start: rfc3339(hour),
        bucket_end: rfc3339(hour + HOUR),
        event_info,
        base_model: of.base_model.clone(),
        session_id: of.session.to_string(),
        project_id: of.project.clone(),
        user_id: of.user.clone(),
    }
}

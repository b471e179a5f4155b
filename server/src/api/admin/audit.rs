//! Handler of `GET audit`.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::State;
use serde_json::{Value, json};
use time::format_description::well_known::Iso8601;
use time::{Date, OffsetDateTime, Time};
use trainyard_protocol::TinkerPath;
use trainyard_scheduler::{self as scheduler, AuditCategory, Timestamp};
use trainyard_wire::admin::{AuditEntry, AuditQuery, AuditResponse};
use trainyard_wire::timestamp::rfc3339;

use super::organisation;
use crate::api::request::extract::ApiQuery;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::AppState;

const DAY: Duration = Duration::from_secs(86_400);

/// Returns what was done to an organisation and its objects on one day; for admins. The audit log contains
/// administrative actions, publications, downloads and deletions.
#[utoipa::path(
    get, path = "/api/v1/audit", tag = "administration", params(AuditQuery),
    responses((status = 200, description = "success", body = AuditResponse), Refusals),
)]
pub(in crate::api) async fn audit(
    State(state): State<AppState>,
    Caller(caller): Caller,
    ApiQuery(query): ApiQuery<AuditQuery>,
) -> Reply<AuditResponse> {
    let organisation = organisation(&caller, query.organisation)?;
    let category = match query.event_type.as_deref() {
        None | Some("all") => None,
        Some(name) => Some(AuditCategory::from_text(name).ok_or_else(|| {
            ApiError::invalid(format!(
                "event_type: expected all, checkpoints, projects, teams or organizations, found {name:?}"
            ))
        })?),
    };
    let from = match query.day.as_deref() {
        Some(day) => midnight(
            Date::parse(day, &Iso8601::DATE)
                .map_err(|_| ApiError::invalid(format!("day: expected a date as YYYY-MM-DD, found {day:?}")))?,
        ),
        None => today(state.clock.now()),
    };
    let log = state.scheduler.audit_log(&organisation, category, from, from.plus(DAY)).await?;
    Ok(Answer(AuditResponse { entries: log.into_iter().map(entry).collect() }))
}

fn midnight(day: Date) -> Timestamp {
    Timestamp(OffsetDateTime::new_utc(day, Time::MIDNIGHT).unix_timestamp().saturating_mul(1_000))
}

fn today(now: Timestamp) -> Timestamp {
    let day = i64::try_from(DAY.as_millis()).unwrap_or(i64::MAX);
    Timestamp(now.as_millis().div_euclid(day).saturating_mul(day))
}

fn entry(found: scheduler::AuditEntry) -> AuditEntry {
    let path =
        (found.category == AuditCategory::Checkpoints).then(|| found.subject.parse::<TinkerPath>().ok()).flatten();
    let mut event_details: BTreeMap<String, Value> = found.details.into_iter().collect();
    for (name, value) in [
        ("actor", json!(found.actor)),
        ("subject", json!(found.subject)),
        ("key_id", json!(found.key)),
        ("request_id", json!(found.request_id)),
        ("address", json!(found.address)),
    ] {
        event_details.insert(name.to_owned(), value);
    }
    AuditEntry {
        timestamp: rfc3339(found.at.as_millis()),
        event: found.event,
        event_details,
        model_id: path.as_ref().map(|path| path.run.to_string()),
        tinker_path: path.map(|path| path.to_string()),
    }
}

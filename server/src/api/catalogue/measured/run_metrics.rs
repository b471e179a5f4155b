//! Handler of `GET training_runs/{run_id}/metrics`.

use axum::extract::State;
use trainyard_protocol::RunId;
use trainyard_scheduler::{MetricCurve, MetricPoint};
use trainyard_wire::run_metrics::{CurveQuery, MetricSeries, MetricsFilter, MetricsResponse};

use super::curve;
use super::range::Selection;
use crate::api::request::extract::{ApiPath, ApiQuery};
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

const POINTS: u32 = 1_000;

/// Returns the metrics of a run's forward passes, backward passes and optimizer steps as curves over steps and time.
///
/// A curve with more values than `points` is thinned out: it is divided into intervals of equal width, and the smallest
/// and the largest value of each are returned. Spikes are therefore never lost.
#[utoipa::path(
    get, path = "/api/v1/training_runs/{run_id}/metrics", tag = "catalogue",
    params(("run_id" = String, Path), MetricsFilter, CurveQuery),
    responses((status = 200, description = "success", body = MetricsResponse), Refusals),
)]
pub(in crate::api) async fn run_metrics(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath(run_id): ApiPath<String>,
    ApiQuery(filter): ApiQuery<MetricsFilter>,
    ApiQuery(curve): ApiQuery<CurveQuery>,
) -> Reply<MetricsResponse> {
    let run = RunId::new(run_id);
    let selection = Selection::read(&filter)?;
    let most = curve.points.unwrap_or(POINTS);
    if !(10..=10_000).contains(&most) {
        return Err(ApiError::invalid(format!("points: {most} is not between 10 and 10000")));
    }
    let position = match curve.by.as_deref() {
        None | Some("step") => |point: &MetricPoint| point.0,
        Some("time") => |point: &MetricPoint| point.1,
        Some(by) => return Err(ApiError::invalid(format!("by: expected \"step\" or \"time\", found {by:?}"))),
    };
    let Selection { range, kind, names } = selection;
    let found = state.scheduler.run_curves(&tenant, &run, &range, kind, names.as_ref()).await?;
    let series = found.curves.into_iter().map(|MetricCurve { kind, metric, points }| {
        let recorded = points.len() as u64;
        let mut series = MetricSeries { metric, kind: kind.as_str().to_owned(), recorded, ..MetricSeries::default() };
        for (step, time, value) in curve::thin_out(points, most as usize, position) {
            series.steps.push(step);
            series.times.push(time);
            series.values.push(value);
        }
        series
    });
    Ok(Answer(MetricsResponse {
        training_run_id: run.to_string(),
        requests: found.requests,
        complete_from_step: found.complete_from,
        series: series.collect(),
    }))
}

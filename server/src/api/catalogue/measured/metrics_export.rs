//! Handler of `GET training_runs/{run_id}/metrics/export`.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use trainyard_protocol::{RunId, TenantId};
use trainyard_scheduler::{MetricsReader, RunMetrics};
use trainyard_wire::run_metrics::{ExportQuery, MetricsFilter};

use super::range::Selection;
use super::{columns, line};
use crate::api::request::extract::{ApiPath, ApiQuery};
use crate::api::request::refusals::{Binary, Refusals};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::parquet::ParquetWriter;
use crate::state::AppState;

const JSON_LINES: &str = "application/x-ndjson";
const PARQUET: &str = "application/vnd.apache.parquet";

/// Downloads a run's metrics as a file with a row for each request. The format is JSON Lines, or Parquet with a column
/// for each metric.
#[utoipa::path(
    get, path = "/api/v1/training_runs/{run_id}/metrics/export", tag = "catalogue",
    params(("run_id" = String, Path), MetricsFilter, ExportQuery),
    responses(
        (status = 200, description = "the file",
            content((String = "application/x-ndjson"), (inline(Binary) = "application/vnd.apache.parquet"))),
        Refusals,
    ),
)]
pub(in crate::api) async fn metrics_export(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath(run_id): ApiPath<String>,
    ApiQuery(filter): ApiQuery<MetricsFilter>,
    ApiQuery(query): ApiQuery<ExportQuery>,
) -> Result<Response, ApiError> {
    let (run, selection) = (RunId::new(run_id), Selection::read(&filter)?);
    let (body, content_type, suffix) = match query.format.as_deref() {
        None | Some("jsonl") => (json_lines(&state, &tenant, &run, selection).await?, JSON_LINES, "jsonl"),
        Some("parquet") => (parquet(&state, &tenant, &run, selection).await?, PARQUET, "parquet"),
        Some(format) => {
            return Err(ApiError::invalid(format!("format: expected \"jsonl\" or \"parquet\", found {format:?}")));
        }
    };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    let name: String =
        run.as_str().chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    if let Ok(disposition) = format!("attachment; filename=\"{name}.{suffix}\"").parse() {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    Ok(response)
}

/// Metrics of a run that remain to be sent.
struct Rows {
    reader: MetricsReader,
    selection: Selection,
}

impl Rows {
    async fn open(state: &AppState, tenant: &TenantId, run: &RunId, selection: Selection) -> Result<Self, ApiError> {
        let reader = state.scheduler.run_metrics(tenant, run, selection.range.clone()).await?;
        Ok(Self { reader, selection })
    }

    /// Returns the next selected rows; `None` after the last.
    async fn next(&mut self) -> Result<Option<Vec<RunMetrics>>, ApiError> {
        let page = self.reader.page().await?;
        if page.is_empty() {
            return Ok(None);
        }
        Ok(Some(page.into_iter().filter_map(|row| self.selection.of(row)).collect()))
    }
}

/// Returns a body made of parts. If the last part is an error, it aborts the body.
fn streamed<S, F>(start: S, next: impl Fn(S) -> F + Send + 'static) -> Body
where
    S: Send + 'static,
    F: Future<Output = Result<Option<(Bytes, Option<S>)>, ApiError>> + Send,
{
    Body::from_stream(stream::unfold((Some(start), next), |(state, next)| async move {
        match next(state?).await {
            Ok(Some((part, rest))) => Some((Ok(part), (rest, next))),
            Ok(None) => None,
            Err(error) => Some((Err(error), (None, next))),
        }
    }))
}

async fn json_lines(state: &AppState, tenant: &TenantId, run: &RunId, selection: Selection) -> Result<Body, ApiError> {
    let rows = Rows::open(state, tenant, run, selection).await?;
    Ok(streamed(rows, |mut rows| async move {
        let Some(page) = rows.next().await? else { return Ok(None) };
        let mut text = Vec::new();
        for row in page {
            serde_json::to_writer(&mut text, &line(row)).map_err(|error| ApiError::Internal(error.to_string()))?;
            text.push(b'\n');
        }
        Ok(Some((text.into(), Some(rows))))
    }))
}

/// A Parquet file that is being written.
struct ParquetExport {
    rows: Rows,
    names: BTreeSet<String>,
    writer: ParquetWriter,
    /// Number of rows left of those that the first pass found. Later rows may have other metrics.
    left: usize,
}

async fn parquet(state: &AppState, tenant: &TenantId, run: &RunId, selection: Selection) -> Result<Body, ApiError> {
    let (mut names, mut left) = (BTreeSet::new(), 0);
    let mut rows = Rows::open(state, tenant, run, selection).await?;
    while let Some(page) = rows.next().await? {
        left += page.len();
        for row in page {
            names.extend(row.values.into_keys());
        }
    }
    let rows = Rows::open(state, tenant, run, rows.selection).await?;
    let writer = ParquetWriter::new(columns::columns(&names));
    Ok(streamed(ParquetExport { rows, names, writer, left }, |mut export| async move {
        let page = if export.left == 0 { None } else { export.rows.next().await? };
        let Some(mut page) = page else { return Ok(Some((export.writer.finish().into(), None))) };
        page.truncate(export.left);
        export.left -= page.len();
        let part = export.writer.row_group(&columns::values(&page, &export.names));
        let part = part.map_err(|error| ApiError::Internal(format!("failed to write a Parquet file: {error}")))?;
        Ok(Some((part.into(), Some(export))))
    }))
}

// Generated from openapi/openapi.json by `make sdk`; not for editing.

//! Operations of the group `catalogue`.

use crate::api::{Api, Request};
use crate::error::Error;
#[allow(unused_imports, reason = "not every group has bodies")]
use super::types;
impl Api {
    /// Lists the caller's checkpoints of all runs, newest first. With `access_scope=accessible`, the list includes public ones of other tenants. With `project_id`, it contains only checkpoints of sessions in this project of the caller's, whatever the scope.
    ///
    /// `GET /api/v1/checkpoints`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn checkpoints(
        &self,
        query: &CheckpointsQuery,
    ) -> Result<types::CheckpointsResponse, Error> {
        let request = Request::new(reqwest::Method::GET, &["api", "v1", "checkpoints"])
            .query(query)?;
        self.send_for_json(request).await
    }
    /// Searches the checkpoints that the caller may list, newest first. These are the caller's own; with another `owner`, also public ones.
    ///
    /// `POST /api/v1/checkpoints/search`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn checkpoints_search(
        &self,
        body: &types::CheckpointSearchRequest,
    ) -> Result<types::CheckpointSearchResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "checkpoints", "search"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Downloads a file of a checkpoint's weights. The URL contains its authorisation.
    ///
    /// `GET /api/v1/downloads/{run_id}/{kind}/{name}/{file}`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn download(
        &self,
        run_id: &str,
        kind: &str,
        name: &str,
        file: &str,
        query: &DownloadQuery,
    ) -> Result<Vec<u8>, Error> {
        let request = Request::new(
                reqwest::Method::GET,
                &[
                    "api",
                    "v1",
                    "downloads",
                    &run_id.to_string(),
                    &kind.to_string(),
                    &name.to_string(),
                    &file.to_string(),
                ],
            )
            .query(query)?;
        self.send_for_bytes(request).await
    }
    /// Lists the caller's training runs, newest first. With `access_scope=accessible`, the list includes runs of other tenants that have a public checkpoint.
    ///
    /// `GET /api/v1/training_runs`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn training_runs(
        &self,
        query: &TrainingRunsQuery,
    ) -> Result<types::TrainingRunsResponse, Error> {
        let request = Request::new(reqwest::Method::GET, &["api", "v1", "training_runs"])
            .query(query)?;
        self.send_for_json(request).await
    }
    /// Returns a training run. With `access_scope=accessible`, it may belong to another tenant if it has a public checkpoint.
    ///
    /// `GET /api/v1/training_runs/{run_id}`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn training_run(
        &self,
        run_id: &str,
        query: &TrainingRunQuery,
    ) -> Result<types::TrainingRun, Error> {
        let request = Request::new(
                reqwest::Method::GET,
                &["api", "v1", "training_runs", &run_id.to_string()],
            )
            .query(query)?;
        self.send_for_json(request).await
    }
    /// Lists a run's checkpoints, newest first. For a run of another tenant, the list contains only public ones.
    ///
    /// `GET /api/v1/training_runs/{run_id}/checkpoints`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn run_checkpoints(
        &self,
        run_id: &str,
    ) -> Result<types::CheckpointsResponse, Error> {
        let request = Request::new(
            reqwest::Method::GET,
            &["api", "v1", "training_runs", &run_id.to_string(), "checkpoints"],
        );
        self.send_for_json(request).await
    }
    /// Deletes a checkpoint with its files.
    ///
    /// `DELETE /api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn checkpoint_delete(
        &self,
        run_id: &str,
        kind: &str,
        name: &str,
    ) -> Result<(), Error> {
        let request = Request::new(
            reqwest::Method::DELETE,
            &[
                "api",
                "v1",
                "training_runs",
                &run_id.to_string(),
                "checkpoints",
                &kind.to_string(),
                &name.to_string(),
            ],
        );
        self.send_for_nothing(request).await
    }
    /// Returns URLs of the files of a checkpoint's weights. The URLs contain their authorisation.
    ///
    /// `GET /api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}/external_weights_urls`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn external_weights_urls(
        &self,
        run_id: &str,
        kind: &str,
        name: &str,
    ) -> Result<types::ExternalUrlsResponse, Error> {
        let request = Request::new(
            reqwest::Method::GET,
            &[
                "api",
                "v1",
                "training_runs",
                &run_id.to_string(),
                "checkpoints",
                &kind.to_string(),
                &name.to_string(),
                "external_weights_urls",
            ],
        );
        self.send_for_json(request).await
    }
    /// Publishes a checkpoint: every tenant can then read it. The call can be repeated.
    ///
    /// `POST /api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}/publish`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn checkpoint_publish(
        &self,
        run_id: &str,
        kind: &str,
        name: &str,
    ) -> Result<(), Error> {
        let request = Request::new(
            reqwest::Method::POST,
            &[
                "api",
                "v1",
                "training_runs",
                &run_id.to_string(),
                "checkpoints",
                &kind.to_string(),
                &name.to_string(),
                "publish",
            ],
        );
        self.send_for_nothing(request).await
    }
    /// Makes a checkpoint private. The call can be repeated.
    ///
    /// `DELETE /api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}/publish`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn checkpoint_unpublish(
        &self,
        run_id: &str,
        kind: &str,
        name: &str,
    ) -> Result<(), Error> {
        let request = Request::new(
            reqwest::Method::DELETE,
            &[
                "api",
                "v1",
                "training_runs",
                &run_id.to_string(),
                "checkpoints",
                &kind.to_string(),
                &name.to_string(),
                "publish",
            ],
        );
        self.send_for_nothing(request).await
    }
    /// Sets the number of seconds after which a checkpoint is deleted. Null removes the expiry.
    ///
    /// `PUT /api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}/ttl`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn checkpoint_ttl(
        &self,
        run_id: &str,
        kind: &str,
        name: &str,
        body: &types::TtlRequest,
    ) -> Result<(), Error> {
        let request = Request::new(
                reqwest::Method::PUT,
                &[
                    "api",
                    "v1",
                    "training_runs",
                    &run_id.to_string(),
                    "checkpoints",
                    &kind.to_string(),
                    &name.to_string(),
                    "ttl",
                ],
            )
            .json(body)?;
        self.send_for_nothing(request).await
    }
    /// Returns the metrics of a run's forward passes, backward passes and optimizer steps as curves over steps and time.
    ///
    /// A curve with more values than `points` is thinned out: it is divided into intervals of equal width, and the smallest and the largest value of each are returned. Spikes are therefore never lost.
    ///
    /// `GET /api/v1/training_runs/{run_id}/metrics`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn run_metrics(
        &self,
        run_id: &str,
        query: &RunMetricsQuery,
    ) -> Result<types::MetricsResponse, Error> {
        let request = Request::new(
                reqwest::Method::GET,
                &["api", "v1", "training_runs", &run_id.to_string(), "metrics"],
            )
            .query(query)?;
        self.send_for_json(request).await
    }
    /// Downloads a run's metrics as a file with a row for each request. The format is JSON Lines, or Parquet with a column for each metric.
    ///
    /// `GET /api/v1/training_runs/{run_id}/metrics/export`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn metrics_export(
        &self,
        run_id: &str,
        query: &MetricsExportQuery,
    ) -> Result<Vec<u8>, Error> {
        let request = Request::new(
                reqwest::Method::GET,
                &["api", "v1", "training_runs", &run_id.to_string(), "metrics", "export"],
            )
            .query(query)?;
        self.send_for_bytes(request).await
    }
}
/// What `checkpoints` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct CheckpointsQuery {
    /// Maximum number of items to return.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Number of items to skip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// `owned` (the default), or `accessible` to include what other tenants have made public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_scope: Option<String>,
    /// Returns only items of sessions in this project of the caller's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
}
/// What `download` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct DownloadQuery {
    /// Tenant that the URL was signed for.
    pub tenant: String,
    /// Time at which the URL expires, in seconds since 1970.
    pub expires: i64,
    /// HMAC-SHA256 of the other parameters and the path.
    pub signature: String,
}
/// What `training_runs` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct TrainingRunsQuery {
    /// Maximum number of items to return.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Number of items to skip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// `owned` (the default), or `accessible` to include what other tenants have made public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_scope: Option<String>,
    /// Returns only items of sessions in this project of the caller's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
}
/// What `training_run` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct TrainingRunQuery {
    /// `owned` (the default), or `accessible` to include what other tenants have made public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_scope: Option<String>,
}
/// What `run_metrics` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct RunMetricsQuery {
    /// Names of metrics, separated by commas; all by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<String>,
    /// Kind of the requests: `forward`, `forward_backward` or `optim_step`; all by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// First step to include.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_step: Option<u64>,
    /// Last step to include.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_step: Option<u64>,
    /// Earliest time at which the requests ended, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_time: Option<String>,
    /// Latest time at which the requests ended, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_time: Option<String>,
    /// Maximum number of points per series. Longer series are divided into intervals, of which the smallest and the largest value are returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub points: Option<u32>,
    /// Axis that the intervals divide evenly: `step` (the default) or `time`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}
/// What `metrics_export` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct MetricsExportQuery {
    /// Names of metrics, separated by commas; all by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<String>,
    /// Kind of the requests: `forward`, `forward_backward` or `optim_step`; all by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// First step to include.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_step: Option<u64>,
    /// Last step to include.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_step: Option<u64>,
    /// Earliest time at which the requests ended, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_time: Option<String>,
    /// Latest time at which the requests ended, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_time: Option<String>,
    /// File format: `jsonl` (the default) or `parquet`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

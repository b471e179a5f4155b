// Generated from openapi/openapi.json by `make sdk`; not for editing.

//! Operations of the group `catalogue`.

use crate::api::{Api, Request};
use crate::error::Error;
#[allow(unused_imports, reason = "not every group has bodies")]
use super::types;
impl Api {
    /// The caller's checkpoints across runs, newest first; with `access_scope=accessible` also other tenants' public ones. With `project_id`, those of sessions in this project of the caller's alone, whatever the scope.
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
    /// Searches the checkpoints that the caller may list, newest first: its own, or with another `owner` also public ones.
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
    /// A file of an exported checkpoint. The URL is its own authorisation.
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
    /// The caller's training runs, newest first; with `access_scope=accessible` also other tenants' runs that have a public checkpoint.
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
    /// A training run; with `access_scope=accessible` also another tenant's that has a public checkpoint.
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
    /// A run's checkpoints, newest first; of another tenant's run, those that are public.
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
    /// Self-authorising URLs of an exported checkpoint's files.
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
    /// Lets every tenant read a checkpoint. Repetitions are accepted.
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
    /// Makes a checkpoint private. Repetitions are accepted.
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
    /// Lets a checkpoint expire so many seconds from now; null removes the expiry.
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
    /// The metrics that a run's forward passes, backward passes and optimizer steps returned, as curves over steps and time.
    ///
    /// A curve with more values than `points` is thinned out on the server: of each of equally wide stretches the smallest and the largest value are returned, so that no spike is lost.
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
    /// A run's metrics as a file, a row for each request: JSON Lines, or Parquet with a column for each metric.
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
    /// Most items to return.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Items to skip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// `owned`, or `accessible` with what other tenants have made public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_scope: Option<String>,
    /// Only those of sessions in this project of the caller's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
}
/// What `download` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct DownloadQuery {
    /// For whom it was signed.
    pub tenant: String,
    /// When it ends, in seconds since the epoch.
    pub expires: i64,
    /// HMAC-SHA256 of all the rest.
    pub signature: String,
}
/// What `training_runs` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct TrainingRunsQuery {
    /// Most items to return.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Items to skip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// `owned`, or `accessible` with what other tenants have made public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_scope: Option<String>,
    /// Only those of sessions in this project of the caller's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
}
/// What `training_run` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct TrainingRunQuery {
    /// `owned`, or `accessible` with what other tenants have made public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_scope: Option<String>,
}
/// What `run_metrics` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct RunMetricsQuery {
    /// Names, separated by commas; all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<String>,
    /// Of requests of one kind: `forward`, `forward_backward` or `optim_step`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// First step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_step: Option<u64>,
    /// Last step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_step: Option<u64>,
    /// Of requests that ended at this time or later, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_time: Option<String>,
    /// Of requests that ended at this time or earlier, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_time: Option<String>,
    /// Most points of each series. Of more, the smallest and the largest value of each stretch are returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub points: Option<u32>,
    /// What the stretches divide evenly: `step` or `time`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}
/// What `metrics_export` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct MetricsExportQuery {
    /// Names, separated by commas; all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<String>,
    /// Of requests of one kind: `forward`, `forward_backward` or `optim_step`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// First step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_step: Option<u64>,
    /// Last step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_step: Option<u64>,
    /// Of requests that ended at this time or later, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_time: Option<String>,
    /// Of requests that ended at this time or earlier, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_time: Option<String>,
    /// `jsonl` or `parquet`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

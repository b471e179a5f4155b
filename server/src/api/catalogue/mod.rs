//! Runs, checkpoints, their files and their metrics.

pub(super) mod checkpoint_delete;
pub(super) mod checkpoint_publish;
pub(super) mod checkpoint_ttl;
pub(super) mod checkpoint_unpublish;
pub(super) mod checkpoints;
pub(super) mod checkpoints_search;
pub(super) mod download;
pub(super) mod external_weights_urls;
pub(crate) mod measured;
pub(super) mod run_checkpoints;
pub(super) mod training_run;
pub(super) mod training_runs;

pub(super) use self::measured::{metrics_export, run_metrics};

use crate::endpoint::table::endpoints;

endpoints! {
    keyed {
        get "/api/v1/training_runs" training_runs: Nothing, [];
        get "/api/v1/training_runs/{run_id}" training_run: Nothing, [Missing];
        get "/api/v1/training_runs/{run_id}/checkpoints" run_checkpoints: Nothing, [Missing];
        get "/api/v1/training_runs/{run_id}/metrics" run_metrics: Nothing, [Missing];
        get "/api/v1/training_runs/{run_id}/metrics/export" metrics_export: Nothing, [Missing];
        get "/api/v1/checkpoints" checkpoints: Nothing, [];
        post "/api/v1/checkpoints/search" checkpoints_search: Nothing, [Missing];
        delete "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}" checkpoint_delete: Checkpoints, [Missing];
        put "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}/ttl" checkpoint_ttl: Checkpoints, [Missing];
        post "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}/publish" checkpoint_publish: Checkpoints, [Missing];
        delete "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}/publish" checkpoint_unpublish: Checkpoints, [Missing];
        get "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}/external_weights_urls" external_weights_urls: Nothing, [Missing];
    }
    open {
        get "/api/v1/downloads/{run_id}/{kind}/{name}/{file}" download: [Missing];
    }
}

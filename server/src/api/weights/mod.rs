//! Saving, loading, copying and uploading weights.

pub(super) mod copy_weights;
pub(super) mod external_weights_upload_finish;
pub(super) mod external_weights_upload_start;
pub(super) mod load_weights;
pub(super) mod save_weights;
pub(super) mod save_weights_external;
pub(super) mod save_weights_for_sampler;
pub(super) mod upload_file;
pub(super) mod weights_info;

use crate::endpoint::table::endpoints;

endpoints! {
    keyed {
        post "/api/v1/save_weights" save_weights: Train, [Missing, Over, Mismatch];
        post "/api/v1/save_weights_for_sampler" save_weights_for_sampler: Train, [Missing, Over, Mismatch];
        post "/api/v1/save_weights_external" save_weights_external: Train, [Missing, Over, Mismatch];
        post "/api/v1/load_weights" load_weights: Train, [Missing, Over, Mismatch];
        post "/api/v1/external_weights_upload_start" external_weights_upload_start: Checkpoints, [Missing];
        post "/api/v1/external_weights_upload_finish" external_weights_upload_finish: Checkpoints, [Missing];
        post "/api/v1/weights_info" weights_info: Nothing, [Missing];
        post "/api/v1/copy_weights" copy_weights: AnyChange, [Missing, Over, Mismatch];
    }
    open {
        put "/api/v1/uploads/{upload_id}/{file}" upload_file: [Missing];
    }
}

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

//! Runs and their training requests.

pub(super) mod create_custom_loss;
pub(super) mod create_model;
pub(super) mod forward;
pub(super) mod forward_backward;
pub(super) mod get_info;
pub(super) mod optim_step;

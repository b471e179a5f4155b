//! Runs and their training requests.

pub(super) mod create_custom_loss;
pub(super) mod create_model;
pub(super) mod forward;
pub(super) mod forward_backward;
pub(super) mod get_info;
pub(super) mod optim_step;

use crate::endpoint::table::endpoints;

endpoints! {
    keyed {
        post "/api/v1/create_model" create_model: Train, [Missing, Over, Mismatch];
        post "/api/v1/get_info" get_info: Nothing, [Missing];
        post "/api/v1/create_custom_loss" create_custom_loss: Train, [Missing, Over, Mismatch];
        post "/api/v1/forward_backward" forward_backward: Train, [Missing, Over, Mismatch];
        post "/api/v1/forward" forward: Train, [Missing, Over, Mismatch];
        post "/api/v1/optim_step" optim_step: Train, [Missing, Over, Mismatch];
    }
    open {}
}

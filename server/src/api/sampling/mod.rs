//! Sampling sessions and samples.

pub(super) mod asample;
pub(super) mod create_sampling_session;
pub(super) mod join_sampling_session;
pub(super) mod sampler;

use crate::endpoint::table::endpoints;

endpoints! {
    keyed {
        post "/api/v1/create_sampling_session" create_sampling_session: Sample, [Missing, Over, Mismatch];
        post "/api/v1/join_sampling_session" join_sampling_session: Sample, [Missing, Over];
        get "/api/v1/samplers/{sampler_id}" sampler: Nothing, [Missing];
        post "/api/v1/asample" asample: Sample, [Missing, Over, Mismatch];
    }
    open {}
}

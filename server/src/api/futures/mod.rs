//! Endpoints that wait for the results of requests, or cancel requests.

pub(super) mod cancel_future;
pub(super) mod retrieve_future;
pub(super) mod retrieve_futures;

use crate::endpoint::table::endpoints;

endpoints! {
    keyed {
        post "/api/v1/retrieve_future" retrieve_future: Nothing, [Missing, Over];
        post "/api/v1/retrieve_futures" retrieve_futures: Nothing, [Missing, Over];
        post "/api/v1/cancel_future" cancel_future: AnyChange, [Missing];
    }
    open {}
}

//! Leases of runs and claims on samples, which decide the worker of each.
//!
//! | a lease is | by whom, and when | file |
//! |---|---|---|
//! | claimed | a worker takes a free lease with work; its epoch grows by one | `claim_runs.rs`, `claim_samples.rs` |
//! | renewed | each heartbeat of its worker | `heartbeat.rs` |
//! | released | its worker, once it has unloaded the run. The queue decides: the run is idle or handed over (`queue/eviction.rs`), or its session has ended (`queue/sessions.rs`); `queue_effects.rs` records it. All leases at shutdown: `registration.rs` | `release.rs` |
//! | expired | another process frees the leases of a worker that sends no heartbeat | `expiry.rs` |
//! | checked | each write about the run, which is refused under a superseded epoch | `fence.rs` |
//!
//! `claims.rs`, `heartbeats.rs` and `worker_numerics.rs` are the state of this process's worker behind this.
//! `numerics.rs` decides which runs a worker leaves to others because it computes differently. `rounds.rs` does all of
//! this periodically, and `reconcile.rs` repairs differences between the store and the queue.

mod claim_runs;
mod claim_samples;
pub(crate) mod claims;
mod expiry;
mod fence;
mod heartbeat;
pub(crate) mod heartbeats;
mod load_run;
mod numerics;
mod reconcile;
mod registration;
mod release;
mod rounds;
mod session_end;
pub(crate) mod worker_numerics;

pub(crate) use fence::{holds_lease, sample_claim};
pub(crate) use heartbeat::send_heartbeats;
pub(crate) use registration::Deregister;
pub(crate) use release::{ReleaseRun, ReleaseSamples};
pub(crate) use rounds::run_rounds;
pub(crate) use session_end::apply_session_end;

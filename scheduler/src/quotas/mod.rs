//! What a tenant may use: shares, quotas and the pace of its requests. Free of input and output; the time is an
//! argument.

mod bucket;
mod policy;
mod refusal;
#[cfg(test)]
mod tests;
mod throttle;

pub use policy::{Policies, TenantPolicy};
pub use refusal::{Quota, Refusal};
pub use throttle::Pause;
pub(crate) use throttle::Throttle;

//! The checks of `trainyard doctor`: whether a server with this configuration would start here and work well. They
//! change nothing: no database, folder or schema is made, and the few files written to measure are removed.
//!
//! Each group of checks is a file here. A check never fails the program: an error is the result of the check.

mod device;
mod disk;
#[cfg_attr(not(feature = "cuda"), path = "gpu_missing.rs")]
mod gpu;
mod limits;
mod machine;
mod memory;
mod models;
mod ports;
mod processor;
mod redact;
mod report;
mod shapes;
mod storage;
mod store;

pub use report::{Check, Report, Status};

use crate::config::{Config, ConfigError, Role, Shapes};

/// Runs all checks for a server with this configuration; `shapes` are the sizes of the device's checks with real shapes.
pub async fn examine(config: &Config, shapes: Shapes) -> Report {
    let mut checks = processor::check(config);
    checks.extend(device::check(config, shapes));
    let (models, sources) = models::check(config);
    checks.extend(memory::check(config, &sources));
    checks.extend(models);
    drop(sources);
    checks.extend(disk::check(&config.data_dir));
    checks.extend(store::check(config).await);
    checks.extend(storage::check(&config.storage).await);
    checks.extend(ports::check(config.host, config.port));
    checks.extend(limits::check(&config.http.connections));
    if config.models.is_empty() && config.role != Role::Api {
        checks.push(options(&ConfigError::NoModel.to_string()));
    }
    Report::new(checks)
}

/// Reports a configuration that is refused.
pub fn refused(reason: &str) -> Report {
    Report::new(vec![options(reason)])
}

fn options(reason: &str) -> Check {
    let advice = "correct the flag, variable or file that it names; docs/operators/deployment.md describes them";
    Check::failure("configuration", "options", reason, advice)
}

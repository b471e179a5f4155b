//! Checks of values beyond their type.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use trainyard_gpu_runtime::backend::HostKernels;

use super::NamedPath;
use super::error::{ConfigError, MAX_RETENTION_HOURS};
use crate::metrics::Access;

/// The shortest metrics token, in characters.
const MIN_TOKEN: usize = 8;

pub(super) fn models(flags: Vec<NamedPath>, file: BTreeMap<String, PathBuf>) -> Result<Vec<NamedPath>, ConfigError> {
    let models =
        if flags.is_empty() { file.into_iter().map(|(name, path)| NamedPath { name, path }).collect() } else { flags };
    if models.is_empty() {
        return Err(ConfigError::NoModel);
    }
    for (index, model) in models.iter().enumerate() {
        if models[..index].iter().any(|earlier| earlier.name == model.name) {
            return Err(ConfigError::DuplicateModel(model.name.clone()));
        }
    }
    Ok(models)
}

pub(super) fn metrics_access(token: Option<&str>, private: bool) -> Result<Access, ConfigError> {
    if token.is_some_and(|token| token.trim().len() < MIN_TOKEN) {
        return Err(ConfigError::MetricsToken);
    }
    Ok(Access::new(token.map(str::trim), private))
}

pub(super) fn parse_host(host: Option<String>) -> Result<IpAddr, ConfigError> {
    match host.as_deref() {
        None | Some("localhost") => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        Some(text) => text.parse().map_err(|_| ConfigError::Host(text.to_owned())),
    }
}

/// Checks a number of days: at least 15, because reports cover two weeks.
pub(super) fn days(name: &'static str, given: Option<u32>) -> Result<Option<Duration>, ConfigError> {
    const LEAST: u32 = 15;
    match given {
        Some(days) if days < LEAST => Err(ConfigError::Days { name, least: LEAST }),
        given => Ok(given.map(|days| Duration::from_secs(u64::from(days) * 86_400))),
    }
}

/// Checks a retention: at least a second, at most [`MAX_RETENTION_HOURS`].
pub(super) fn retention(hours: f64) -> Result<Duration, ConfigError> {
    let period = Duration::try_from_secs_f64(hours * 3_600.0).map_err(|_| ConfigError::Retention)?;
    if period < Duration::from_secs(1) || hours > MAX_RETENTION_HOURS {
        Err(ConfigError::Retention)
    } else {
        Ok(period)
    }
}

/// Checks that the processor has the chosen kernels, if any were chosen.
pub(super) fn kernels(
    chosen: Option<HostKernels>,
    available: Vec<HostKernels>,
) -> Result<Option<HostKernels>, ConfigError> {
    match chosen {
        Some(chosen) if !available.contains(&chosen) => Err(ConfigError::Kernels { chosen, available }),
        chosen => Ok(chosen),
    }
}

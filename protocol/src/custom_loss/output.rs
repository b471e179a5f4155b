//! Reads the output of a graph: its loss and its metrics.

use super::error::shortened;
use super::place::{Given, Place};
use super::{Argument, GraphError, MAX_METRICS, Metric};

const PREFIX: &str = "custom/";
/// Maximum number of bytes of a metric's name, without prefix and suffix.
const MAX_METRIC_NAME: usize = 64;

/// Reads `[(loss, {metric: node})]`. Within an output, a dictionary was read as a list of pairs.
pub(super) fn read_output(place: &Place<'_>, given: Given) -> Result<(usize, Vec<Metric>), GraphError> {
    let malformed = || place.refused("must return a loss and a dictionary of metrics, each the value of a node");
    if !given.named.is_empty() {
        return Err(malformed());
    }
    let [Argument::List(returned) | Argument::Tuple(returned)] = given.positional.as_slice() else {
        return Err(malformed());
    };
    let [Argument::Node(loss), Argument::List(pairs)] = returned.as_slice() else { return Err(malformed()) };
    if pairs.len() > MAX_METRICS {
        return Err(place.refused(format!("returns {} metrics, at most {MAX_METRICS} are allowed", pairs.len())));
    }
    let mut metrics = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let Argument::List(pair) = pair else { return Err(malformed()) };
        let [Argument::Text(key), Argument::Node(node)] = pair.as_slice() else { return Err(malformed()) };
        if !is_metric_key(key) {
            return Err(place.refused(format!(
                "metric {:?} must be called custom/<name>:sum or custom/<name>:mean, <name> having 1 to 64 characters of \
                 a-z, 0-9, _, ., / and -",
                shortened(key)
            )));
        }
        metrics.push(Metric { key: key.clone(), node: *node });
    }
    metrics.sort_by(|a, b| a.key.cmp(&b.key));
    Ok((*loss, metrics))
}

fn is_metric_key(key: &str) -> bool {
    let name = key.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(":sum").or(rest.strip_suffix(":mean")));
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_./-".contains(&byte);
    name.is_some_and(|name| !name.is_empty() && name.len() <= MAX_METRIC_NAME && name.bytes().all(is_allowed))
}

//! Limits of the process.

use super::Check;
use trainyard_http::listener::{ConnectionLimits, descriptors};

const GROUP: &str = "limits";
/// Open files that the store, the storage, models and logs need.
const OWN: usize = 128;
const FEW: usize = 4096;

pub(super) fn check(connections: &ConnectionLimits) -> Vec<Check> {
    vec![files(descriptors(), connections.total)]
}

fn files(files: usize, connections: usize) -> Check {
    let value = format!("{files}, for up to {connections} connections");
    let advice = "raise it: ulimit -n, or LimitNOFILE= of the systemd unit";
    if files < connections.saturating_add(OWN) {
        let advice = format!("{advice}; or pass --max-connections with at most {}", files.saturating_sub(OWN));
        return Check::failure(GROUP, "open files", value, advice);
    }
    if files < FEW {
        return Check::warning(GROUP, "open files", value, advice);
    }
    Check::ok(GROUP, "open files", value)
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn connections_beyond_the_files_are_a_failure() {
        assert_eq!(files(65_536, 16_384).status, Status::Ok);
        assert_eq!(files(1024, 768).status, Status::Warning);
        assert_eq!(files(1024, 1024).status, Status::Failure);
    }
}

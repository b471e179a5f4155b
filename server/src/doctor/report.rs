//! The result: as text for people, as JSON for programs.

use std::fmt;

use serde::Serialize;

/// Of the JSON document. Fields may be added to it; what is there stays.
const VERSION: u32 = 1;

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it should be.
    Ok,
    /// The server would start, and may work badly.
    Warning,
    /// The server would not start, or would lose or refuse work.
    Failure,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What it belongs to, e.g. `store`.
    pub group: &'static str,
    /// What was looked at, e.g. `schema`.
    pub name: String,
    /// How it is.
    pub status: Status,
    /// What was measured or found.
    pub value: String,
    /// What to do; `None` where nothing is to be done.
    pub advice: Option<String>,
}

impl Check {
    /// As it should be.
    pub fn ok(group: &'static str, name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { group, name: name.into(), status: Status::Ok, value: value.into(), advice: None }
    }

    /// Something that should be better.
    pub fn warning(
        group: &'static str,
        name: impl Into<String>,
        value: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { status: Status::Warning, advice: Some(advice.into()), ..Self::ok(group, name, value) }
    }

    /// Something that has to be corrected.
    pub fn failure(
        group: &'static str,
        name: impl Into<String>,
        value: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { status: Status::Failure, advice: Some(advice.into()), ..Self::ok(group, name, value) }
    }
}

/// All checks.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    version: u32,
    release: &'static str,
    /// That of the worst check.
    pub status: Status,
    /// In the order in which they were made.
    pub checks: Vec<Check>,
}

impl Report {
    pub(super) fn new(checks: Vec<Check>) -> Self {
        let status = checks.iter().map(|check| check.status).max().unwrap_or(Status::Ok);
        Self { version: VERSION, release: env!("CARGO_PKG_VERSION"), status, checks }
    }
}

/// A line per check, with what to do below it, and a summary.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |of: fn(&Check) -> &str| self.checks.iter().map(|check| of(check).chars().count()).max();
        let group = width(|check| check.group).unwrap_or(0);
        let name = width(|check| &check.name).unwrap_or(0);
        let mut last = "";
        for check in &self.checks {
            let shown = if check.group == last { "" } else { check.group };
            let mark = match check.status {
                Status::Ok => "ok",
                Status::Warning => "WARNING",
                Status::Failure => "FAILURE",
            };
            writeln!(f, "{shown:group$}  {:name$}  {mark:7}  {}", check.name, check.value)?;
            if let Some(advice) = &check.advice {
                writeln!(f, "{:1$}→ {advice}", "", group + name + 13)?;
            }
            last = check.group;
        }
        let count = |status| self.checks.iter().filter(|check| check.status == status).count();
        match (count(Status::Failure), count(Status::Warning)) {
            (0, 0) => writeln!(f, "\nAll is well."),
            (failures, warnings) => writeln!(f, "\nFailures: {failures}, warnings: {warnings}."),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_worst_check_counts_and_programs_can_read_all() {
        let report = Report::new(vec![
            Check::ok("a", "one", "1"),
            Check::failure("b", "two", "2", "do this"),
            Check::warning("b", "three", "3", "do that"),
        ]);
        assert_eq!(report.status, Status::Failure);
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["version"], 1);
        assert_eq!(json["status"], "failure");
        let first = serde_json::json!({"group": "a", "name": "one", "status": "ok", "value": "1", "advice": null});
        assert_eq!(json["checks"][0], first);
        assert_eq!(json["checks"][1]["advice"], "do this");
    }

    #[test]
    fn people_get_columns() {
        let report = Report::new(vec![
            Check::ok("processor", "kernels", "avx2"),
            Check::warning("disk", "free", "1 GiB", "free some"),
        ]);
        let text = report.to_string();
        let columns: Vec<usize> =
            ["avx2", "1 GiB", "→"].iter().map(|part| text.lines().find_map(|line| line.find(part)).unwrap()).collect();
        assert_eq!((columns[0], columns[1]), (columns[1], columns[2]), "{text}");
        assert!(text.ends_with("Failures: 0, warnings: 1.\n"), "{text}");
        assert!(Report::new(Vec::new()).to_string().contains("All is well"));
    }
}

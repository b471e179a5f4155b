//! The report of all checks: as text for people, as JSON for programs.

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use serde::Serialize;

use super::machine::Machine;
use super::redact::redacted;

/// The version of the JSON document. Fields may be added to a version, but not changed or removed.
const VERSION: u32 = 1;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Everything is as it should be.
    Ok,
    /// The server would start, but may work badly.
    Warning,
    /// The server would not start, or would lose or refuse work.
    Failure,
}

/// One check and its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// The group of the check, e.g. `store`.
    pub group: &'static str,
    /// The subject of the check, e.g. `schema`.
    pub name: String,
    /// The result of the check.
    pub status: Status,
    /// The measured or found value.
    pub value: String,
    /// The remedy; `None` if nothing needs to be done.
    pub advice: Option<String>,
    /// Duration of the check in seconds, where it is measured.
    pub seconds: Option<f64>,
    /// Measured numbers; their names end with their unit.
    pub numbers: BTreeMap<&'static str, f64>,
    /// Largest relative error, where results are compared.
    pub error: Option<f64>,
    /// Largest relative error that passes.
    pub tolerance: Option<f64>,
}

impl Check {
    /// Makes a check without a finding.
    pub fn ok(group: &'static str, name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            group,
            name: name.into(),
            status: Status::Ok,
            value: value.into(),
            advice: None,
            seconds: None,
            numbers: BTreeMap::new(),
            error: None,
            tolerance: None,
        }
    }

    /// Makes a check with a finding that should be improved.
    pub fn warning(
        group: &'static str,
        name: impl Into<String>,
        value: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { status: Status::Warning, advice: Some(advice.into()), ..Self::ok(group, name, value) }
    }

    /// Makes a check with a finding that must be corrected.
    pub fn failure(
        group: &'static str,
        name: impl Into<String>,
        value: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { status: Status::Failure, advice: Some(advice.into()), ..Self::ok(group, name, value) }
    }

    /// Returns the check without secrets: reports are sent to others.
    fn redacted(self) -> Self {
        let [name, value] = [&self.name, &self.value].map(|text| redacted(text));
        Self { name, value, advice: self.advice.as_deref().map(redacted), ..self }
    }

    /// Sets the duration of the check.
    #[must_use]
    pub fn took(self, seconds: f64) -> Self {
        Self { seconds: Some(seconds), ..self }
    }

    /// Adds measured numbers. JSON has no infinities and no NaN: such numbers are left out.
    #[must_use]
    pub fn with_numbers<const N: usize>(mut self, numbers: [(&'static str, f64); N]) -> Self {
        self.numbers.extend(numbers.into_iter().filter(|(_, number)| number.is_finite()));
        self
    }

    /// Sets the error of what was compared, and its tolerance. An error that is not finite is left out.
    #[must_use]
    pub fn compared(self, error: Option<f64>, tolerance: Option<f64>) -> Self {
        Self { error: error.filter(|error| error.is_finite()), tolerance, ..self }
    }
}

/// The results of all checks.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    version: u32,
    release: &'static str,
    /// When the report was made, in seconds since 1970.
    created: u64,
    machine: Machine,
    /// The status of the worst check.
    pub status: Status,
    /// The checks in the order in which they were made.
    pub checks: Vec<Check>,
}

impl Report {
    pub(super) fn new(checks: Vec<Check>) -> Self {
        let status = checks.iter().map(|check| check.status).max().unwrap_or(Status::Ok);
        let checks = checks.into_iter().map(Check::redacted).collect();
        let created = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self {
            version: VERSION,
            release: env!("CARGO_PKG_VERSION"),
            created,
            machine: Machine::detect(),
            status,
            checks,
        }
    }
}

/// Writes a line per check, with the remedy below it, and a summary.
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
            (0, 0) => writeln!(f, "\nNo problems found."),
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
            Check::ok("a", "one", "1")
                .took(0.5)
                .with_numbers([("rate_gbs", 4.0), ("ratio", f64::NAN)])
                .compared(Some(0.25), Some(0.5)),
            Check::failure("b", "two", "2", "do this").compared(Some(f64::INFINITY), None),
            Check::warning("b", "three", "3", "do that"),
        ]);
        assert_eq!(report.status, Status::Failure);
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["version"], 1);
        assert_eq!(json["status"], "failure");
        let first = serde_json::json!({
            "group": "a", "name": "one", "status": "ok", "value": "1", "advice": null,
            "seconds": 0.5, "numbers": {"rate_gbs": 4.0}, "error": 0.25, "tolerance": 0.5,
        });
        assert_eq!(json["checks"][0], first);
        assert_eq!(json["checks"][1]["numbers"], serde_json::json!({}));
        assert_eq!(json["checks"][1]["error"], serde_json::Value::Null);
        assert!(json["created"].as_u64().is_some() && json["machine"]["architecture"].is_string(), "{json}");
        assert_eq!(json["checks"][1]["advice"], "do this");
    }

    #[test]
    fn reports_have_no_secrets() {
        let url = "postgres://me:secret@db/x";
        let report = Report::new(vec![Check::failure("a", url, format!("{url}: no"), format!("start {url}"))]);
        let json = serde_json::to_string(&report).unwrap();
        assert!(!json.contains("secret") && !report.to_string().contains("secret"), "{json}");
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
        assert!(Report::new(Vec::new()).to_string().contains("No problems found"));
    }
}

//! Parses the selection of metrics in a query.

use std::collections::BTreeSet;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use trainyard_scheduler::{MetricsRange, RequestKind, RunMetrics, Timestamp};
use trainyard_wire::run_metrics::MetricsFilter;

use crate::error::ApiError;

/// A filter whose values have been checked.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) range: MetricsRange,
    pub(super) kind: Option<RequestKind>,
    /// Names of the metrics; `None` selects all.
    pub(super) names: Option<BTreeSet<String>>,
}

impl Selection {
    /// Parses a filter.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`] with the name of the field at fault.
    pub(super) fn read(filter: &MetricsFilter) -> Result<Self, ApiError> {
        let all = MetricsRange::ALL;
        let steps = (
            step("from_step", filter.from_step)?.unwrap_or(all.steps.0),
            step("to_step", filter.to_step)?.unwrap_or(all.steps.1),
        );
        if steps.1 < steps.0 {
            return Err(ApiError::invalid("to_step: must not be less than from_step"));
        }
        let times = (
            time("from_time", filter.from_time.as_deref())?.unwrap_or(all.times.0),
            time("to_time", filter.to_time.as_deref())?.unwrap_or(all.times.1),
        );
        if times.1 < times.0 {
            return Err(ApiError::invalid("to_time: must not be earlier than from_time"));
        }
        let kind = match filter.kind.as_deref() {
            None => None,
            Some("forward") => Some(RequestKind::Forward),
            Some("forward_backward") => Some(RequestKind::ForwardBackward),
            Some("optim_step") => Some(RequestKind::OptimStep),
            Some(kind) => {
                let text =
                    format!("kind: expected \"forward\", \"forward_backward\" or \"optim_step\", found {kind:?}");
                return Err(ApiError::invalid(text));
            }
        };
        let names = filter.metrics.as_ref().map(|names| names.split(',').map(str::to_owned).collect());
        Ok(Self { range: MetricsRange { steps, times }, kind, names })
    }

    /// Returns whether a metric is selected.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.as_ref().is_none_or(|names| names.contains(name))
    }

    /// Returns the selected metrics of a row; `None` if it has none.
    pub(super) fn of(&self, mut row: RunMetrics) -> Option<RunMetrics> {
        if self.kind.is_some_and(|kind| kind != row.kind) {
            return None;
        }
        if self.names.is_some() {
            row.values.retain(|name, _| self.has(name));
        }
        (self.names.is_none() || !row.values.is_empty()).then_some(row)
    }
}

fn step(field: &str, value: Option<i64>) -> Result<Option<i64>, ApiError> {
    match value {
        Some(value) if value < 0 => Err(ApiError::invalid(format!("{field}: {value} is less than 0"))),
        value => Ok(value),
    }
}

fn time(field: &str, text: Option<&str>) -> Result<Option<Timestamp>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    let wrong = || ApiError::invalid(format!("{field}: expected an RFC 3339 time, found {text:?}"));
    let time = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| wrong())?;
    i64::try_from(time.unix_timestamp_nanos().div_euclid(1_000_000)).map(|ms| Some(Timestamp(ms))).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn wrong_fields_are_named() {
        let filter = MetricsFilter::default;
        for (filter, field) in [
            (MetricsFilter { from_step: Some(-1), ..filter() }, "from_step"),
            (MetricsFilter { from_step: Some(2), to_step: Some(1), ..filter() }, "to_step"),
            (MetricsFilter { kind: Some("sample".to_owned()), ..filter() }, "kind"),
            (MetricsFilter { from_time: Some("yesterday".to_owned()), ..filter() }, "from_time"),
            (
                MetricsFilter {
                    from_time: Some("2026-01-02T00:00:00Z".to_owned()),
                    to_time: Some("2026-01-01T00:00:00Z".to_owned()),
                    ..filter()
                },
                "to_time",
            ),
        ] {
            assert!(Selection::read(&filter).unwrap_err().to_string().starts_with(field), "{filter:?}");
        }
    }

    #[test]
    fn rows_without_a_metric_that_is_asked_for_are_left_out() {
        let row = |name: &str| RunMetrics {
            step: 0,
            seq_id: 1,
            kind: RequestKind::OptimStep,
            at: Timestamp(0),
            values: BTreeMap::from([(name.to_owned(), Some(1.0)), ("other".to_owned(), None)]),
        };
        let filter = MetricsFilter { metrics: Some("a,b".to_owned()), ..MetricsFilter::default() };
        let selection = Selection::read(&filter).unwrap();
        assert_eq!(selection.of(row("a")).unwrap().values, BTreeMap::from([("a".to_owned(), Some(1.0))]));
        assert_eq!(selection.of(row("c")), None);
        let filter = MetricsFilter { kind: Some("forward".to_owned()), ..MetricsFilter::default() };
        assert_eq!(Selection::read(&filter).unwrap().of(row("a")), None);
        assert_eq!(Selection::read(&MetricsFilter::default()).unwrap().of(row("a")), Some(row("a")));
    }
}

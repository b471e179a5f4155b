//! Parses the period that a call asks for.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use trainyard_scheduler::Timestamp;
use trainyard_wire::usage::UsageQuery;

use crate::budgets::USAGE_DAYS;
use crate::error::ApiError;

/// Length of an hour, in milliseconds.
pub(super) const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// Parses the period of a query: whole hours, not in the future, at most 14 days.
pub(super) fn read(query: &UsageQuery, now: Timestamp) -> Result<(Timestamp, Timestamp), ApiError> {
    let from = hour("starting_on", &query.starting_on)?;
    let to = hour("ending_before", &query.ending_before)?;
    if from > now {
        return Err(ApiError::invalid("starting_on: must not be in the future"));
    }
    if to <= from {
        return Err(ApiError::invalid("ending_before: must be later than starting_on"));
    }
    if to.as_millis().saturating_sub(from.as_millis()) > USAGE_DAYS * DAY {
        return Err(ApiError::invalid(format!("ending_before: must be at most {USAGE_DAYS} days after starting_on")));
    }
    Ok((from, to))
}

fn hour(field: &str, text: &str) -> Result<Timestamp, ApiError> {
    let expected =
        || ApiError::invalid(format!("{field}: expected an RFC 3339 time at the start of an hour, found {text:?}"));
    let time = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| expected())?;
    let milliseconds = i64::try_from(time.unix_timestamp_nanos() / 1_000_000).map_err(|_| expected())?;
    let is_whole = time.nanosecond() == 0 && milliseconds.rem_euclid(HOUR) == 0;
    if is_whole { Ok(Timestamp(milliseconds)) } else { Err(expected()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_period_has_whole_hours_of_at_most_14_days() {
        let now = Timestamp(1_700_000_000_000);
        let ask = |starting_on: &str, ending_before: &str| {
            let (starting_on, ending_before) = (starting_on.to_owned(), ending_before.to_owned());
            read(&UsageQuery { starting_on, ending_before, organisation: None }, now)
        };
        let from = Timestamp(1_699_920_000_000);
        let two = ask("2023-11-14T00:00:00Z", "2023-11-14T02:00:00Z").unwrap();
        assert_eq!(two, (from, Timestamp(from.0 + 2 * HOUR)));
        assert_eq!(ask("2023-11-14T01:00:00+01:00", "2023-11-14T02:00:00Z").unwrap(), two);
        assert!(ask("2023-11-14T00:00:00Z", "2023-11-28T00:00:00Z").is_ok());
        for (from, to, field) in [
            ("2023-11-14T00:00:00Z", "2023-11-28T01:00:00Z", "ending_before"),
            ("2023-11-14T00:00:00Z", "2023-11-14T00:00:00Z", "ending_before"),
            ("2023-11-15T00:00:00Z", "2023-11-16T00:00:00Z", "starting_on"),
            ("2023-11-14T00:30:00Z", "2023-11-14T02:00:00Z", "starting_on"),
            ("2023-11-14T00:00:00.5Z", "2023-11-14T02:00:00Z", "starting_on"),
            ("2023-11-14", "2023-11-14T02:00:00Z", "starting_on"),
        ] {
            assert!(ask(from, to).unwrap_err().to_string().starts_with(field), "{from} {to}");
        }
    }
}

//! Formats times as the API writes them.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Formats milliseconds since 1970 in RFC 3339, in UTC. Times that the calendar can't represent become the start of
/// 1970.
pub fn rfc3339(milliseconds: i64) -> String {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(milliseconds) * 1_000_000)
        .ok()
        .and_then(|time| time.format(&Rfc3339).ok())
        .unwrap_or_else(|| "1970-01-01T00:00:00Z".to_owned())
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn milliseconds_become_utc() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
        assert_eq!(rfc3339(i64::MAX), "1970-01-01T00:00:00Z");
    }
}

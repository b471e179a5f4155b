//! The expiry of a certificate: the one field that `rustls` does not expose.

use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time};

/// The tag of a certificate's optional version.
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Reads `notAfter` of a DER certificate (RFC 5280, 4.1). `None` if the certificate is malformed.
pub(super) fn not_after(certificate: &[u8]) -> Option<OffsetDateTime> {
    let certificate = element(certificate)?.content;
    let mut fields = element(certificate)?.content;
    if element(fields)?.tag == VERSION {
        fields = element(fields)?.rest;
    }
    // Serial number, signature algorithm and issuer.
    for _ in 0..3 {
        fields = element(fields)?.rest;
    }
    let validity = element(fields)?.content;
    let end = element(element(validity)?.rest)?;
    time(end.tag, end.content)
}

struct Element<'a> {
    tag: u8,
    content: &'a [u8],
    rest: &'a [u8],
}

/// Returns the first element of a DER sequence.
fn element(der: &[u8]) -> Option<Element<'_>> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f)).filter(|(bytes, _)| bytes.len() <= 4)?;
        (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some(Element { tag, content, rest })
}

/// Reads `YYMMDDHHMMSSZ` of 1950 to 2049, or the same with four digits of the year.
fn time(tag: u8, text: &[u8]) -> Option<OffsetDateTime> {
    let digits = text.strip_suffix(b"Z")?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = digits.split_at_checked(2)?;
            let year = number(year)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = digits.split_at_checked(4)?;
            (number(year)?, rest)
        }
        _ => return None,
    };
    let mut parts = [0; 5];
    if rest.len() != 2 * parts.len() {
        return None;
    }
    for (part, digits) in parts.iter_mut().zip(rest.chunks(2)) {
        *part = u8::try_from(number(digits)?).ok()?;
    }
    let [month, day, hour, minute, second] = parts;
    let date = Date::from_calendar_date(i32::from(year), Month::try_from(month).ok()?, day).ok()?;
    Some(PrimitiveDateTime::new(date, Time::from_hms(hour, minute, second).ok()?).assume_utc())
}

fn number(digits: &[u8]) -> Option<u16> {
    digits.iter().all(u8::is_ascii_digit).then(|| std::str::from_utf8(digits).ok()?.parse().ok())?
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    /// A self-signed certificate, valid until 2031-02-03T04:05:06Z.
    const CERTIFICATE: &str = concat!(
        "MIIBBDCBq6ADAgECAgEHMAoGCCqGSM49BAMCMAwxCjAIBgNVBAMMAXQwHhcNMjYwMTAxMDAwMDAwWhcNMzEwMjAzMDQwNTA2WjAM",
        "MQowCAYDVQQDDAF0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAET2xj+QrsG2/lyv+PC9hFvn4haZ4dXHwLGxL+CBh2BgTinHsy",
        "yue1NsYwmxmuvDFa9aNWD6sWic5p27hxnMzNTDAKBggqhkjOPQQDAgNIADBFAiBlwFubBtE4Q9kb2ZarjuCZS//m0N8EFAQ17wLm",
        "8zpQhgIhAKFQrBcb6tGc5OueZIpQfcyW5PydPlM1ydW/gWMQAWd4",
    );

    #[test]
    fn a_certificate_says_until_when_it_is_valid() {
        let certificate = STANDARD.decode(CERTIFICATE).unwrap();
        assert_eq!(not_after(&certificate).unwrap().to_string(), "2031-02-03 4:05:06.0 +00:00:00");
        for length in 0..certificate.len() {
            assert_eq!(not_after(&certificate[..length]), None);
        }
    }

    #[test]
    fn both_forms_of_time_are_read() {
        let shown = |tag, text: &str| time(tag, text.as_bytes()).map(|time| time.to_string());
        assert_eq!(shown(UTC_TIME, "491231235959Z").unwrap(), "2049-12-31 23:59:59.0 +00:00:00");
        assert_eq!(shown(UTC_TIME, "500101000000Z").unwrap(), "1950-01-01 0:00:00.0 +00:00:00");
        assert_eq!(shown(GENERALIZED_TIME, "99991231235959Z").unwrap(), "9999-12-31 23:59:59.0 +00:00:00");
        for wrong in ["", "Z", "4912312359Z", "491231235959", "491331235959Z", "+91231235959Z"] {
            assert_eq!(shown(UTC_TIME, wrong), None);
        }
    }
}

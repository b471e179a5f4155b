//! Parses `Content-Range` and `Content-Digest` of requests.

use axum::http::{HeaderMap, HeaderName, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::ApiError;

/// Header with the digest of the bytes in one request (RFC 9530).
pub(crate) const CONTENT_DIGEST: HeaderName = HeaderName::from_static("content-digest");
/// Header with the digest of the whole file (RFC 9530).
pub(crate) const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");

/// The part of a file that a request contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The request contains the whole file.
    Whole,
    /// The request contains the bytes from `start` up to, but not including, `end`.
    Range { start: u64, end: u64, total: Option<u64> },
    /// The request contains no bytes: it asks how much has arrived.
    Status { total: Option<u64> },
}

impl Part {
    /// Parses `bytes <first>-<last>/<total>` or `bytes */<total>`, with `*` for an unknown total.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        let Some(text) = single(headers, &header::CONTENT_RANGE)? else { return Ok(Self::Whole) };
        Self::parse(text).ok_or_else(|| {
            let shown: String = text.chars().take(80).collect();
            ApiError::invalid(format!(
                "Content-Range: expected bytes <first>-<last>/<total> or bytes */<total> (* if unknown), found {shown:?}"
            ))
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let (range, total) = text.strip_prefix("bytes ")?.trim().split_once('/')?;
        let total = if total == "*" { None } else { Some(number(total)?) };
        if range == "*" {
            return Some(Self::Status { total });
        }
        let (first, last) = range.split_once('-')?;
        let (start, end) = (number(first)?, number(last)?.checked_add(1)?);
        (start < end && total.is_none_or(|total| end <= total)).then_some(Self::Range { start, end, total })
    }
}

/// Parses a number that consists only of digits: `parse` accepts signs too.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Returns the SHA-256 in a digest header. `None` if the header is absent or contains only other algorithms, which RFC
/// 9530 ignores.
pub(crate) fn sha256(headers: &HeaderMap, name: &HeaderName) -> Result<Option<[u8; 32]>, ApiError> {
    let Some(text) = single(headers, name)? else { return Ok(None) };
    let wrong = || ApiError::invalid(format!("{name}: expected sha-256=:<base64 of 32 bytes>:"));
    for entry in text.split(',') {
        let (algorithm, value) = entry.trim().split_once('=').ok_or_else(wrong)?;
        if !algorithm.eq_ignore_ascii_case("sha-256") {
            continue;
        }
        let encoded = value.strip_prefix(':').and_then(|value| value.strip_suffix(':')).ok_or_else(wrong)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| wrong())?;
        return bytes.try_into().map(Some).map_err(|_| wrong());
    }
    Ok(None)
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ApiError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(ApiError::invalid(format!("{name}: expected one header, found several")));
    }
    value.to_str().map(Some).map_err(|_| ApiError::invalid(format!("{name}: expected visible ASCII characters")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn part(text: &str) -> Result<Part, ApiError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_RANGE, HeaderValue::from_str(text).unwrap());
        Part::of(&headers)
    }

    #[test]
    fn parts_are_exact() {
        assert_eq!(Part::of(&HeaderMap::new()).unwrap(), Part::Whole);
        assert_eq!(part("bytes 0-9/10").unwrap(), Part::Range { start: 0, end: 10, total: Some(10) });
        assert_eq!(part("bytes 5-5/*").unwrap(), Part::Range { start: 5, end: 6, total: None });
        assert_eq!(part("bytes */12").unwrap(), Part::Status { total: Some(12) });
        assert_eq!(part("bytes */*").unwrap(), Part::Status { total: None });
        let long = format!("bytes 0-{}/*", u64::MAX);
        for wrong in
            ["", "bytes", "bytes 1-0/5", "bytes 0-5/5", "bytes -5/9", "bytes +1-2/9", "items 0-1/2", "bytes 0-1", &long]
        {
            assert!(
                matches!(part(wrong), Err(ApiError::Invalid(text)) if text.starts_with("Content-Range: ")),
                "{wrong}"
            );
        }
        let mut twice = HeaderMap::new();
        twice.append(header::CONTENT_RANGE, HeaderValue::from_static("bytes */1"));
        twice.append(header::CONTENT_RANGE, HeaderValue::from_static("bytes */2"));
        assert!(Part::of(&twice).is_err());
    }

    #[test]
    fn digests_of_other_algorithms_are_not_for_this_server() {
        let read = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_DIGEST, HeaderValue::from_static(text));
            sha256(&headers, &CONTENT_DIGEST)
        };
        assert_eq!(sha256(&HeaderMap::new(), &CONTENT_DIGEST).unwrap(), None);
        assert_eq!(read("md5=:AAAA:").unwrap(), None);
        let zeros = "unixsum=:AAA=:, sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:";
        assert_eq!(read(zeros).unwrap(), Some([0; 32]));
        for wrong in ["sha-256", "sha-256=AAAA", "sha-256=:AAAA:", "sha-256=:?:"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_part_or_refused(text in "(bytes )?[-0-9*/+ ]{0,24}|[ -~]{0,40}") {
            if let Ok(Part::Range { start, end, total }) = part(&text) {
                prop_assert!(start < end && total.is_none_or(|total| end <= total));
            }
        }
    }
}

//! The position of a request in a distributed trace, as W3C Trace Context defines it.

use std::fmt;

/// Length of `traceparent` in version 00: version, trace, span and flags.
const LENGTH: usize = 55;
/// Flag of a trace that its caller may have recorded.
const SAMPLED: u8 = 1;

/// A span of the caller or of the callee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// Id of the trace, which is not zero.
    pub trace_id: u128,
    /// Id of the span, which is not zero.
    pub span_id: u64,
    /// Whether the trace is recorded.
    pub sampled: bool,
}

impl TraceContext {
    /// Parses the header `traceparent`. Returns `None` if the standard demands a new trace: the header is malformed, or
    /// names no trace. Later versions are read like version 00.
    pub fn parse(traceparent: &str) -> Option<Self> {
        let (known, rest) = traceparent.split_at_checked(LENGTH)?;
        let mut fields = known.split('-');
        let version = hex(fields.next()?, 2)?;
        let trace_id = hex(fields.next()?, 32)?;
        let span_id = u64::try_from(hex(fields.next()?, 16)?).ok()?;
        let flags = hex(fields.next()?, 2)?;
        let ends = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.is_empty() || rest.starts_with('-'),
        };
        let valid = ends && fields.next().is_none() && trace_id != 0 && span_id != 0;
        valid.then_some(Self { trace_id, span_id, sampled: flags & u128::from(SAMPLED) != 0 })
    }

    /// Returns the trace id as 32 hexadecimal digits.
    pub fn trace_id(self) -> String {
        format!("{:032x}", self.trace_id)
    }

    /// Returns a span of the same trace.
    #[must_use]
    pub fn child(self, span_id: u64) -> Self {
        Self { span_id, ..self }
    }
}

/// Formats the span as the header `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, u8::from(self.sampled) * SAMPLED)
    }
}

/// Parses a number of `digits` hexadecimal digits in lower case.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let valid = text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    valid.then(|| u128::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::TraceContext;

    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_trace_parent_is_read_and_written() {
        let context = TraceContext::parse(EXAMPLE).unwrap();
        let expected = TraceContext {
            trace_id: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
            span_id: 0x00f0_67aa_0ba9_02b7,
            sampled: true,
        };
        assert_eq!((context, context.to_string().as_str()), (expected, EXAMPLE));
        assert!(!TraceContext::parse(&EXAMPLE.replace("-01", "-00")).unwrap().sampled);
        // Flags that have no meaning yet are not passed on.
        assert_eq!(TraceContext::parse(&EXAMPLE.replace("-01", "-ff")).unwrap().to_string(), EXAMPLE);
    }

    #[test]
    fn later_versions_may_have_more_fields() {
        for later in [EXAMPLE.replacen("00-", "cc-", 1), EXAMPLE.replacen("00-", "01-", 1) + "-what-comes"] {
            assert_eq!(TraceContext::parse(&later), TraceContext::parse(EXAMPLE), "{later}");
        }
    }

    #[test]
    fn what_the_standard_does_not_allow_begins_a_new_trace() {
        for wrong in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01x",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7 01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "+0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-0",
        ] {
            assert_eq!(TraceContext::parse(wrong), None, "{wrong}");
        }
    }
}

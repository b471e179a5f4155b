//! Notifications between the processes on one database, through LISTEN and NOTIFY.

use trainyard_protocol::{RequestId, RunId, SamplingSessionId, SessionId};

/// Channel on which all processes listen.
pub(crate) const CHANNEL: &str = "trainyard";

/// Separator between a run and its owner; neither name contains it.
const SEPARATOR: char = '\t';

/// Largest notification in bytes; PostgreSQL refuses 8,000 bytes and more.
pub(crate) const MAX_BYTES: usize = 7_900;

/// Event for which another process may wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// A request has ended.
    Done(RequestId),
    /// A sample of a clone of a sampling session has ended.
    Event(SamplingSessionId, i64),
    /// A run has a new request; this worker had its lease when the request was accepted.
    Run(RunId, Option<String>),
    /// New samples were accepted.
    Samples,
    /// A session has ended.
    Session(SessionId),
    /// A sample was cancelled while a worker had it.
    Cancel(RequestId),
    /// Leases have become free.
    Released,
    /// A process watches a sample: it wants tokens that were not yet sent to it, or all of them.
    Watch { request: RequestId, process: String, from_start: bool },
    /// A request of a run recorded metrics.
    Metrics(RunId),
    /// A sample of a run was stored, or those of a run were deleted.
    StoredSamples(RunId),
    /// Keys, users or organisations were changed.
    Directory,
}

impl Signal {
    fn write(&self, text: &mut String) {
        let (tag, rest) = match self {
            Self::Done(id) => ('d', id.to_string()),
            Self::Event(id, clone) => ('e', format!("{clone}/{id}")),
            Self::Run(id, owner) => ('r', format!("{id}{SEPARATOR}{}", owner.as_deref().unwrap_or_default())),
            Self::Samples => ('s', String::new()),
            Self::Session(id) => ('x', id.to_string()),
            Self::Cancel(id) => ('c', id.to_string()),
            Self::Released => ('f', String::new()),
            Self::Watch { request, process, from_start } => {
                (if *from_start { 'W' } else { 'w' }, format!("{process}{SEPARATOR}{request}"))
            }
            Self::Metrics(run) => ('m', run.to_string()),
            Self::StoredSamples(run) => ('p', run.to_string()),
            Self::Directory => ('k', String::new()),
        };
        text.push(tag);
        text.push_str(&rest);
        text.push('\n');
    }

    fn read(line: &str) -> Option<Self> {
        let rest = line.get(1..)?;
        Some(match line.as_bytes().first()? {
            b'd' => Self::Done(RequestId::new(rest)),
            b'e' => {
                let (clone, id) = rest.split_once('/')?;
                Self::Event(SamplingSessionId::new(id), clone.parse().ok()?)
            }
            b'r' => {
                let (id, owner) = rest.split_once(SEPARATOR)?;
                Self::Run(RunId::new(id), Some(owner).filter(|owner| !owner.is_empty()).map(str::to_owned))
            }
            b's' => Self::Samples,
            b'x' => Self::Session(SessionId::new(rest)),
            b'c' => Self::Cancel(RequestId::new(rest)),
            b'f' => Self::Released,
            tag @ (b'w' | b'W') => {
                let (process, request) = rest.split_once(SEPARATOR)?;
                let (request, process) = (RequestId::new(request), process.to_owned());
                Self::Watch { request, process, from_start: *tag == b'W' }
            }
            b'm' => Self::Metrics(RunId::new(rest)),
            b'p' => Self::StoredSamples(RunId::new(rest)),
            b'k' => Self::Directory,
            _ => return None,
        })
    }
}

/// Encodes signals as notifications: the first line names the sender, each further line contains a signal.
pub(crate) fn encode(sender: &str, signals: &[Signal]) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let mut line = String::new();
    let mut seen: Vec<&Signal> = Vec::new();
    for signal in signals {
        // The same run or sampling session often occurs several times in a row.
        if seen.iter().rev().take(8).any(|earlier| *earlier == signal) {
            continue;
        }
        seen.push(signal);
        line.clear();
        signal.write(&mut line);
        match texts.last_mut().filter(|text| text.len() + line.len() <= MAX_BYTES) {
            Some(text) => text.push_str(&line),
            None => texts.push(format!("{sender}\n{line}")),
        }
    }
    texts
}

/// Decodes the signals of a notification from another process. Those sent by `me` were handled already.
pub(crate) fn decode(me: &str, text: &str) -> Vec<Signal> {
    let mut lines = text.lines();
    match lines.next() {
        Some(sender) if sender != me => lines.filter_map(Signal::read).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_decoded_as_encoded_and_fit_into_notifications() {
        let signals = [
            Signal::Done(RequestId::new("a")),
            Signal::Event(SamplingSessionId::new("s:sample:0"), 3),
            Signal::Run(RunId::new("s:train:1"), None),
            Signal::Run(RunId::new("s:train:1"), Some("worker".to_owned())),
            Signal::Samples,
            Signal::Session(SessionId::new("s")),
            Signal::Cancel(RequestId::new("c")),
            Signal::Released,
            Signal::Watch { request: RequestId::new("w"), process: "p".to_owned(), from_start: false },
            Signal::Watch { request: RequestId::new("w"), process: "p".to_owned(), from_start: true },
            Signal::Metrics(RunId::new("s:train:1")),
            Signal::StoredSamples(RunId::new("s:train:1")),
            Signal::Directory,
        ];
        let texts = encode("me", &signals);
        assert_eq!(texts.len(), 1);
        assert_eq!(decode("other", &texts[0]), signals);
        assert_eq!(decode("me", &texts[0]), []);
        let many: Vec<Signal> = (0..1000).map(|i| Signal::Done(RequestId::new(format!("request-{i:040}")))).collect();
        let texts = encode("me", &many);
        assert!(texts.len() > 1 && texts.iter().all(|text| text.len() < 8000));
        let back: Vec<Signal> = texts.iter().flat_map(|text| decode("other", text)).collect();
        assert_eq!(back, many);
    }

    #[test]
    fn malformed_signals_are_ignored() {
        assert_eq!(decode("me", ""), []);
        assert_eq!(decode("me", "other\nz\ne\nex/y\nr\n\ns"), [Signal::Samples]);
    }
}

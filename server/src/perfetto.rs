//! A session's timeline as a Perfetto trace (`.pftrace`), which <https://ui.perfetto.dev> shows.
//!
//! Messages and field numbers are those of `perfetto/trace`: a trace is a list of packets; a packet describes a track or is
//! the begin or end of a slice on one. Slices of one track must nest, so that requests which overlap get tracks of their own.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;
use trainyard_protocol::SessionId;
use trainyard_scheduler::{SessionTimeline, TimelineRequest, Timestamp};

/// The track of the session itself; the numbers of others follow.
const SESSION_TRACK: u64 = 1;
/// The one writer of all packets.
const SEQUENCE: u32 = 1;
/// The writer's state begins with the first packet.
const STATE_CLEARED: u32 = 1;

#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, Message)]
struct TracePacket {
    /// The time in nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, tag = "10")]
    trusted_packet_sequence_id: u32,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(uint32, tag = "13")]
    sequence_flags: u32,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    debug_annotations: Vec<DebugAnnotation>,
    #[prost(enumeration = "EventType", optional, tag = "9")]
    r#type: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct DebugAnnotation {
    #[prost(int64, optional, tag = "4")]
    int_value: Option<i64>,
    #[prost(string, optional, tag = "6")]
    string_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    name: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
enum EventType {
    Unspecified = 0,
    SliceBegin = 1,
    SliceEnd = 2,
}

/// Writes the trace of a session at a moment; unfinished requests last until then. Requests are on the tracks of their
/// run or sampling session, each from its acceptance to its end.
pub(crate) fn trace(session: &SessionId, timeline: &SessionTimeline, now: Timestamp) -> Bytes {
    let mut packets = vec![track(SESSION_TRACK, &format!("session {session}"), None)];
    let end = timeline.ended_at.unwrap_or(now);
    slice(&mut packets, SESSION_TRACK, "session", Vec::new(), timeline.created_at, end);
    let mut sources: BTreeMap<String, Vec<&TimelineRequest>> = BTreeMap::new();
    for request in &timeline.requests {
        sources.entry(source(session, request)).or_default().push(request);
    }
    let mut next = SESSION_TRACK + 1;
    for (name, mut requests) in sources {
        requests.sort_by_key(|request| request.accepted);
        // When the last request of each track ends.
        let mut lanes: Vec<Timestamp> = Vec::new();
        for request in requests {
            let end = request.ended.unwrap_or(now).max(request.accepted);
            let lane = lanes.iter().position(|busy| *busy <= request.accepted).unwrap_or(lanes.len());
            match lanes.get_mut(lane) {
                Some(busy) => *busy = end,
                None => {
                    packets.push(track(next + lane as u64, &name, Some(SESSION_TRACK)));
                    lanes.push(end);
                }
            }
            let text = format!("{} {}", request.kind.as_str(), request.seq_id);
            slice(&mut packets, next + lane as u64, &text, annotations(request), request.accepted, end);
        }
        next += lanes.len() as u64;
    }
    if let Some(first) = packets.first_mut() {
        first.sequence_flags = STATE_CLEARED;
    }
    Trace { packet: packets }.encode_to_vec().into()
}

/// The run or sampling session of a request, without the name of their session.
fn source(session: &SessionId, request: &TimelineRequest) -> String {
    let id = match (&request.run, &request.sampling_session) {
        (Some(run), _) => run.as_str(),
        (None, Some(sampler)) => sampler.as_str(),
        (None, None) => "other",
    };
    id.strip_prefix(session.as_str()).and_then(|rest| rest.strip_prefix(':')).unwrap_or(id).to_owned()
}

fn annotations(request: &TimelineRequest) -> Vec<DebugAnnotation> {
    let text = |name: &str, value: &str| DebugAnnotation {
        name: Some(name.to_owned()),
        string_value: Some(value.to_owned()),
        int_value: None,
    };
    let number =
        |name: &str, value| DebugAnnotation { name: Some(name.to_owned()), string_value: None, int_value: Some(value) };
    let mut all = vec![
        text("request_id", request.id.as_str()),
        text("state", request.state.as_str()),
        number("tokens", request.tokens),
    ];
    if request.sampling_session.is_some() {
        all.push(number("num_samples", request.num_samples));
    }
    all
}

fn track(uuid: u64, name: &str, parent_uuid: Option<u64>) -> TracePacket {
    let descriptor = TrackDescriptor { uuid: Some(uuid), name: Some(name.to_owned()), parent_uuid };
    TracePacket { trusted_packet_sequence_id: SEQUENCE, track_descriptor: Some(descriptor), ..TracePacket::default() }
}

fn slice(
    packets: &mut Vec<TracePacket>,
    track: u64,
    name: &str,
    debug_annotations: Vec<DebugAnnotation>,
    begin: Timestamp,
    end: Timestamp,
) {
    let packet = |at: Timestamp, event| TracePacket {
        timestamp: Some(u64::try_from(at.as_millis()).unwrap_or(0).saturating_mul(1_000_000)),
        trusted_packet_sequence_id: SEQUENCE,
        track_event: Some(TrackEvent { track_uuid: Some(track), ..event }),
        ..TracePacket::default()
    };
    let begins = TrackEvent {
        r#type: Some(EventType::SliceBegin.into()),
        name: Some(name.to_owned()),
        debug_annotations,
        ..TrackEvent::default()
    };
    let ends = TrackEvent { r#type: Some(EventType::SliceEnd.into()), ..TrackEvent::default() };
    packets.extend([packet(begin, begins), packet(end, ends)]);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use trainyard_protocol::{RequestId, RunId, SamplingSessionId};
    use trainyard_scheduler::{RequestKind, RequestState};

    use super::*;

    fn sample(number: i64, accepted: i64, ended: Option<i64>) -> TimelineRequest {
        TimelineRequest {
            id: RequestId::new(format!("r{number}")),
            run: None,
            sampling_session: Some(SamplingSessionId::new("s:sample:0")),
            seq_id: number,
            kind: RequestKind::Sample,
            state: if ended.is_some() { RequestState::Succeeded } else { RequestState::Queued },
            num_samples: 2,
            tokens: 7,
            accepted: Timestamp(accepted),
            ended: ended.map(Timestamp),
        }
    }

    #[test]
    fn requests_that_overlap_are_on_tracks_of_their_own() {
        let step = TimelineRequest {
            run: Some(RunId::new("s:train:0")),
            sampling_session: None,
            kind: RequestKind::OptimStep,
            ..sample(3, 12, Some(13))
        };
        let requests = vec![sample(0, 10, Some(20)), sample(1, 15, None), sample(2, 20, Some(25)), step];
        let timeline = SessionTimeline { created_at: Timestamp(5), ended_at: None, requests };
        let packets = Trace::decode(trace(&SessionId::new("s"), &timeline, Timestamp(30))).unwrap().packet;
        let tracks: Vec<_> = packets.iter().filter_map(|packet| packet.track_descriptor.clone()).collect();
        let names: Vec<_> = tracks.iter().map(|track| (track.uuid.unwrap(), track.name.clone().unwrap())).collect();
        let expected = [(1, "session s"), (2, "sample:0"), (3, "sample:0"), (4, "train:0")];
        assert_eq!(names, expected.map(|(uuid, name)| (uuid, name.to_owned())));
        assert!(tracks[1..].iter().all(|track| track.parent_uuid == Some(1)));
        let mut slices = Vec::new();
        for pair in packets.iter().filter(|packet| packet.track_event.is_some()).collect::<Vec<_>>().chunks(2) {
            let (begin, end) = (pair[0].track_event.as_ref().unwrap(), pair[1].track_event.as_ref().unwrap());
            assert_eq!((begin.r#type, end.r#type, begin.track_uuid), (Some(1), Some(2), end.track_uuid));
            let times = (pair[0].timestamp.unwrap() / 1_000_000, pair[1].timestamp.unwrap() / 1_000_000);
            slices.push((begin.track_uuid.unwrap(), begin.name.clone().unwrap(), times));
        }
        let expected = [
            (1, "session", (5, 30)),
            (2, "sample 0", (10, 20)),
            (3, "sample 1", (15, 30)),
            (2, "sample 2", (20, 25)),
            (4, "optim_step 3", (12, 13)),
        ];
        assert_eq!(slices, expected.map(|(track, name, times)| (track, name.to_owned(), times)));
    }
}

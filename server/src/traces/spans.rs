//! The recorded spans, with the attributes of OpenTelemetry's semantic conventions.

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use trainyard_protocol::Category;
use trainyard_scheduler::{Executed, RequestKind, Stages, Timestamp, TraceContext};

use super::{AnsweredCall, Recorder, Traces};

/// A span before the common fields are set.
struct Span {
    name: Cow<'static, str>,
    kind: SpanKind,
    context: TraceContext,
    parent: u64,
    remote: bool,
    state: TraceState,
    start: SystemTime,
    end: SystemTime,
    attributes: Vec<KeyValue>,
    error: Option<String>,
}

impl Traces {
    /// Records a call of the API.
    pub(crate) fn call(&self, answered: AnsweredCall<'_>) {
        let AnsweredCall { call, method, route, path, status, started } = answered;
        let context = call.origin.trace;
        let Some(recorder) = self.0.as_ref().filter(|_| context.sampled) else { return };
        let id = Value::Array(vec![StringValue::from(call.origin.call.to_string())].into());
        let mut attributes = vec![
            KeyValue::new("http.request.method", method),
            KeyValue::new("http.route", route.to_owned()),
            KeyValue::new("url.path", path),
            KeyValue::new("http.response.status_code", i64::from(status)),
            KeyValue::new("http.response.header.x-request-id", id),
        ];
        if status >= 500 {
            attributes.push(KeyValue::new("error.type", status.to_string()));
        }
        recorder.span(Span {
            name: format!("{method} {route}").into(),
            kind: SpanKind::Server,
            context,
            parent: call.parent,
            remote: true,
            state: call.trace_state.as_ref().and_then(|state| state.parse().ok()).unwrap_or_default(),
            start: started,
            end: SystemTime::now(),
            attributes,
            error: (status >= 500).then(String::new),
        });
    }

    /// Records a request that a call submitted, with its stages; the request may end long after the call.
    pub(crate) fn executed(&self, executed: Executed<'_>) {
        let Some(recorder) = self.0.as_ref().filter(|_| executed.origin.trace.sampled) else { return };
        let Executed { request, kind, tenant, run, tokens, failure, origin, stages } = executed;
        let Stages { accepted, started, executed, committed } = stages;
        let whole = origin.trace.child(recorder.id());
        let mut attributes = vec![
            KeyValue::new("trainyard.request.id", request.to_string()),
            KeyValue::new("trainyard.request.kind", kind.as_str()),
            KeyValue::new("trainyard.tenant", tenant.to_string()),
            KeyValue::new("trainyard.tokens", i64::try_from(tokens).unwrap_or(i64::MAX)),
        ];
        if let Some(run) = run {
            attributes.push(KeyValue::new("trainyard.run.id", run.to_string()));
        }
        if kind == RequestKind::Sample {
            attributes.push(KeyValue::new("gen_ai.operation.name", "text_completion"));
        }
        if let Some(failure) = failure {
            attributes.push(KeyValue::new("error.type", category(failure.category)));
        }
        let error = failure.map(trainyard_protocol::OpError::redacted);
        let inner = |name: &'static str, parent, start, end, attributes, error| Span {
            name: name.into(),
            kind: SpanKind::Internal,
            context: origin.trace.child(recorder.id()),
            parent,
            remote: false,
            state: TraceState::default(),
            start: time(start),
            end: time(end),
            attributes,
            error,
        };
        for (name, start, end) in [
            ("queue wait", accepted, started),
            ("engine execution", started, executed),
            ("store commit", executed, committed),
        ] {
            recorder.span(inner(name, whole.span_id, start, end, Vec::new(), None));
        }
        let request = inner(kind.as_str(), origin.trace.span_id, accepted, committed, attributes, error);
        recorder.span(Span { context: whole, ..request });
    }
}

impl Recorder {
    fn id(&self) -> u64 {
        (self.random)().max(1)
    }

    fn span(&self, span: Span) {
        let Span { name, kind, context, parent, remote, state, start, end, attributes, error } = span;
        let TraceContext { trace_id, span_id, .. } = context;
        self.record(SpanData {
            span_context: SpanContext::new(
                TraceId::from(trace_id),
                SpanId::from(span_id),
                TraceFlags::SAMPLED,
                false,
                state,
            ),
            parent_span_id: SpanId::from(parent),
            parent_span_is_remote: remote && parent != 0,
            span_kind: kind,
            name,
            start_time: start,
            // A clock that is set back makes no span of negative length.
            end_time: end.max(start),
            attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: error.map_or(Status::Unset, Status::error),
            instrumentation_scope: self.scope.clone(),
        });
    }
}

fn category(category: Category) -> &'static str {
    match category {
        Category::User => "user",
        Category::Server => "server",
        Category::Unknown => "unknown",
    }
}

fn time(at: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(at.as_millis()).unwrap_or(0))
}

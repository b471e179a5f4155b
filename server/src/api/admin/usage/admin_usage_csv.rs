//! Handler of `GET admin/usage.csv`.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures::stream;
use trainyard_protocol::TenantId;
use trainyard_scheduler::{RequestUsage, Timestamp};
use trainyard_wire::timestamp::rfc3339;
use trainyard_wire::usage::UsageQuery;

use super::period;
use crate::api::admin::organisation;
use crate::api::request::extract::ApiQuery;
use crate::api::request::refusals::Refusals;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::AppState;

/// Number of requests to read at once.
const PAGE: u32 = 2_000;
const HEADER: &str = "request_id,ended_at,kind,base_model,session_id,project_id,user,trained,prefill,cached,sampled\n";

/// Exports as CSV what each request of an organisation used; for admins. The file contains the requests that ended in
/// the period. A period that begins before the time from which they are kept is refused with that time.
#[utoipa::path(
    get, path = "/api/v1/admin/usage.csv", tag = "administration", params(UsageQuery),
    responses((status = 200, description = "success", body = String, content_type = "text/csv"), Refusals),
)]
pub(in crate::api) async fn admin_usage_csv(
    State(state): State<AppState>,
    Caller(caller): Caller,
    ApiQuery(query): ApiQuery<UsageQuery>,
) -> Result<Response, ApiError> {
    let period = period::read(&query, state.clock.now())?;
    let organisation = organisation(&caller, query.organisation)?;
    // What can fail, fails before the answer begins.
    let first = Export { state, organisation, period, after: String::new() }.page().await?;
    let pages = stream::unfold(Some(first), |page| async move {
        let (text, rest) = page?;
        Some(match rest {
            None => (Ok(text), None),
            Some(export) => match export.page().await {
                Ok(next) => (Ok(text), Some(next)),
                Err(error) => (Err(error), None),
            },
        })
    });
    let mut response = Response::new(Body::from_stream(pages));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/csv"));
    Ok(response)
}

/// An export, of which some rows are left.
struct Export {
    state: AppState,
    organisation: TenantId,
    period: (Timestamp, Timestamp),
    after: String,
}

impl Export {
    /// Returns the next lines and the rest of the export.
    async fn page(self) -> Result<(String, Option<Self>), ApiError> {
        let found = self
            .state
            .scheduler
            .request_usage(&self.organisation, self.period.0, self.period.1, &self.after, PAGE)
            .await?;
        // Old rows may be deleted between two pages.
        let complete_from = self.state.scheduler.requests_complete_from(&self.organisation).await?;
        if self.period.0 < complete_from {
            return Err(ApiError::invalid(format!(
                "starting_on: the usage of single requests is complete from {}; sums by hour go back further",
                rfc3339(complete_from.as_millis())
            )));
        }
        let mut text = if self.after.is_empty() { HEADER.to_owned() } else { String::new() };
        found.iter().for_each(|usage| text.push_str(&line(usage)));
        let rest = match found.last() {
            Some(last) if found.len() as u64 == u64::from(PAGE) => {
                Some(Self { after: last.request.clone(), period: (last.at, self.period.1), ..self })
            }
            _ => None,
        };
        Ok((text, rest))
    }
}

fn line(usage: &RequestUsage) -> String {
    let RequestUsage { request, at, kind, of, tokens } = usage;
    let texts = [
        request.as_str(),
        &rfc3339(at.as_millis()),
        kind.as_str(),
        &of.base_model,
        of.session.as_str(),
        of.project.as_deref().unwrap_or_default(),
        of.user.as_deref().unwrap_or_default(),
    ];
    let counts = [tokens.trained, tokens.prefill, tokens.cached, tokens.sampled];
    let fields = texts.iter().map(|text| field(text)).chain(counts.iter().map(u64::to_string));
    let mut line = fields.collect::<Vec<_>>().join(",");
    line.push('\n');
    line
}

/// Formats a field as in RFC 4180. Spreadsheets evaluate texts that begin like a formula, and users choose the names of
/// projects: such a text is prefixed with an apostrophe, which spreadsheets do not show.
fn field(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        return field(&format!("'{text}"));
    }
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn fields_with_separators_are_quoted() {
        assert_eq!(field("plain"), "plain");
        assert_eq!(field("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
    }

    #[test]
    fn formulas_are_texts() {
        for text in ["=1+1", "+1", "-1", "@a", "\t=1"] {
            assert_eq!(field(text), format!("'{text}"));
        }
        assert_eq!(field("=HYPERLINK(\"http://a\",\"b\")"), "\"'=HYPERLINK(\"\"http://a\"\",\"\"b\"\")\"");
    }
}

//! Keeps the order of a run's requests.

use tokio::sync::Mutex;

use crate::api::{Api, Request};
use crate::error::Error;
use crate::generated::types::SubmitResponse;

/// Numbers the requests of a run from 1 without gaps, and sends them in that order.
///
/// A number is used up when the server accepts the request. That is unknown if the connection was lost for longer than
/// retries go on, or if the caller's future was dropped. Then the same request is sent again before the next one. A
/// caller that repeats it with the same content gets that request's result.
#[derive(Debug)]
pub(crate) struct Order {
    api: Api,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    next: u64,
    unconfirmed: Option<Request>,
}

impl Order {
    pub(crate) fn new(api: Api) -> Self {
        Self { api, state: Mutex::new(State { next: 1, unconfirmed: None }) }
    }

    /// Sends the request that `build` makes for the next number. Returns the id of its future.
    pub(crate) async fn submit(&self, build: impl Fn(u64) -> Result<Request, Error> + Send) -> Result<String, Error> {
        let mut state = self.state.lock().await;
        let mut request = build(state.next)?;
        if let Some(unconfirmed) = state.unconfirmed.clone().filter(|unconfirmed| unconfirmed.body != request.body) {
            self.deliver(&mut state, unconfirmed).await?;
            request = build(state.next)?;
        }
        self.deliver(&mut state, request).await
    }

    async fn deliver(&self, state: &mut State, request: Request) -> Result<String, Error> {
        state.unconfirmed = Some(request.clone());
        let sent = self.api.send_for_json::<SubmitResponse>(request).await;
        match sent {
            Ok(accepted) => {
                state.unconfirmed = None;
                state.next += 1;
                Ok(accepted.request_id)
            }
            Err(error) => {
                if error.is_refusal() {
                    state.unconfirmed = None;
                }
                Err(error)
            }
        }
    }
}

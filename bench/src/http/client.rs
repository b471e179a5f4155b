//! The calls of the Tinker SDK, on one connection.

use std::io;
use std::sync::Arc;

use prost::Message;
use serde_json::{Value, json};

use super::connection::{Answer, Connection, Media, ServerAddress};
use super::message::TrainingRequest;

/// Number of tokens of a training example and of a prompt.
const TOKENS: i32 = 16;

/// Returns the input tokens of a training example.
pub(super) fn example_tokens() -> Vec<i32> {
    (0..TOKENS).map(|i| 1 + i * 13 % 200).collect()
}

/// Reason why a call failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("the connection failed: {0}")]
    Connection(#[from] io::Error),
    #[error("{path} was refused with {status}: {text}")]
    Refused { path: &'static str, status: u16, text: String },
    #[error("{path} failed: {text}")]
    Failed { path: &'static str, text: String },
    #[error("{path} answered with something else: {text}")]
    Unexpected { path: &'static str, text: String },
}

/// Result that a future is expected to return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    ForwardBackward,
    Sample,
    Json(&'static str),
}

impl Expect {
    fn headers(self) -> &'static str {
        match self {
            Self::ForwardBackward => "accept: application/x-protobuf\r\nx-tinker-request-type: ForwardBackward\r\n",
            Self::Sample => "accept: application/x-protobuf\r\nx-tinker-request-type: Sample\r\n",
            Self::Json(_) => "accept: application/json\r\n",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::ForwardBackward => "forward_backward",
            Self::Sample => "asample",
            Self::Json(name) => name,
        }
    }
}

/// A client on one connection.
pub(super) struct Client {
    connection: Connection,
}

impl Client {
    pub(super) async fn open(address: &Arc<ServerAddress>) -> Result<Self, Failure> {
        Ok(Self { connection: Connection::open(Arc::clone(address)).await? })
    }

    /// Returns the name of the first model that is served.
    pub(super) async fn first_model(&mut self) -> Result<String, Failure> {
        const PATH: &str = "get_server_capabilities";
        let answer = self.connection.send("GET", PATH, "", Media::Json, b"").await?;
        let value = accepted(PATH, answer)?;
        text(PATH, &value["supported_models"][0], "model_name")
    }

    /// Creates a session, a run with a trained adapter, and a sampling session on a snapshot of the run.
    pub(super) async fn set_up(&mut self, base_model: &str, rank: u32) -> Result<(TrainingRun, Sampler), Failure> {
        let session = self
            .post(
                "create_session",
                &json!({"tags": [], "user_metadata": {}, "sdk_version": "bench", "type": "create_session"}),
            )
            .await?;
        let session = text("create_session", &session, "session_id")?;
        let create = json!({
            "session_id": session, "model_seq_id": 0, "base_model": base_model, "type": "create_model",
            "lora_config": {"rank": rank, "seed": 1, "train_unembed": true, "train_mlp": true, "train_attn": true},
            "optimizer_config": {"type": "adamw"},
        });
        let created = self.finish_call("create_model", &create).await?;
        let mut run = TrainingRun::new(session, text("create_model", &created, "model_id")?);
        let pass = self.submit_forward_backward(&mut run).await?;
        let step = self.submit_optim_step(&mut run).await?;
        self.wait(&pass, Expect::ForwardBackward).await?;
        self.wait(&step, Expect::Json("optim_step")).await?;
        let save = json!({
            "model_id": run.model_id, "seq_id": run.next(), "sampling_session_seq_id": 0, "kind": "snapshot",
            "type": "save_weights_for_sampler",
        });
        let saved = self.finish_call("save_weights_for_sampler", &save).await?;
        let id = text("save_weights_for_sampler", &saved, "sampling_session_id")?;
        Ok((run, Sampler { id }))
    }

    /// Ends the session of a run, so that the server frees the session's memory.
    pub(super) async fn finish(&mut self, run: &TrainingRun) -> Result<(), Failure> {
        let body = json!({"reason": {"type": "success"}, "detail": null}).to_string();
        let (path, headers) = (format!("sessions/{}/finish", run.session), "accept: application/json\r\n");
        let answer = self.connection.send("POST", &path, headers, Media::Json, body.as_bytes()).await?;
        if answer.status == 204 { Ok(()) } else { accepted("sessions/finish", answer).map(drop) }
    }

    /// Submits a pass over one short example and returns its future.
    pub(super) async fn submit_forward_backward(&mut self, run: &mut TrainingRun) -> Result<String, Failure> {
        const PATH: &str = "forward_backward";
        run.pass.seq_id = i32::try_from(run.next()).unwrap_or(i32::MAX);
        let (headers, message) = ("accept: application/json\r\n", run.pass.encode_to_vec());
        let answer = self.connection.send("POST", PATH, headers, Media::Protobuf, &message).await?;
        text(PATH, &accepted(PATH, answer)?, "request_id")
    }

    /// Submits a step and returns its future.
    pub(super) async fn submit_optim_step(&mut self, run: &mut TrainingRun) -> Result<String, Failure> {
        let adam = json!({"learning_rate": 1e-4, "beta1": 0.9, "beta2": 0.95, "eps": 1e-12, "weight_decay": 0.0});
        let body = json!({"model_id": run.model_id, "seq_id": run.next(), "adam_params": adam, "type": "optim_step"});
        let submitted = self.post("optim_step", &body).await?;
        text("optim_step", &submitted, "request_id")
    }

    /// Submits a sample of one token and returns its future.
    pub(super) async fn submit_sample(&mut self, sampler: &Sampler, seq_id: i64) -> Result<String, Failure> {
        let tokens: Vec<i64> = (0..i64::from(TOKENS)).map(|i| 1 + (seq_id * 11 + i * 13) % 200).collect();
        let body = json!({
            "sampling_session_id": sampler.id, "seq_id": seq_id, "num_samples": 1, "type": "sample",
            "prompt": {"chunks": [{"type": "encoded_text", "tokens": tokens}]},
            "sampling_params": {"max_tokens": 1, "seed": 1, "temperature": 1.0, "top_k": -1, "top_p": 1.0},
            "prompt_logprobs": false, "topk_prompt_logprobs": 0,
        });
        let submitted = self.post("asample", &body).await?;
        text("asample", &submitted, "request_id")
    }

    /// Samples one token and waits for it.
    pub(super) async fn sample(&mut self, sampler: &Sampler, seq_id: i64) -> Result<(), Failure> {
        let future = self.submit_sample(sampler, seq_id).await?;
        self.wait(&future, Expect::Sample).await.map(drop)
    }

    /// Waits for a future as the SDK does: by long polls until it has ended.
    pub(super) async fn wait(&mut self, future: &str, expect: Expect) -> Result<Vec<u8>, Failure> {
        const PATH: &str = "retrieve_future";
        let path = expect.name();
        let body = json!({"request_id": future, "allow_metadata_only": true}).to_string();
        loop {
            let answer = self.connection.send("POST", PATH, expect.headers(), Media::Json, body.as_bytes()).await?;
            if answer.status == 200 && answer.protobuf {
                return match expect {
                    Expect::Json(_) => Err(Failure::Unexpected { path, text: "protobuf".to_owned() }),
                    Expect::ForwardBackward | Expect::Sample => Ok(answer.body),
                };
            }
            let body = answer.body.clone();
            let value = accepted(path, answer)?;
            if value["type"] == "try_again" {
                continue;
            }
            return match expect {
                _ if value.get("error").is_some() => Err(Failure::Failed { path, text: value.to_string() }),
                Expect::Json(_) => Ok(body),
                Expect::ForwardBackward | Expect::Sample => Err(Failure::Unexpected { path, text: value.to_string() }),
            };
        }
    }

    async fn finish_call(&mut self, path: &'static str, body: &Value) -> Result<Value, Failure> {
        let submitted = self.post(path, body).await?;
        let future = text(path, &submitted, "request_id")?;
        let result = self.wait(&future, Expect::Json(path)).await?;
        parse(path, &result)
    }

    async fn post(&mut self, path: &'static str, body: &Value) -> Result<Value, Failure> {
        let headers = "accept: application/json\r\n";
        let answer = self.connection.send("POST", path, headers, Media::Json, body.to_string().as_bytes()).await?;
        accepted(path, answer)
    }
}

/// A training run and the number of its last request.
pub(super) struct TrainingRun {
    session: String,
    model_id: String,
    seq_id: i64,
    /// Pass over one short example.
    pass: TrainingRequest,
}

impl TrainingRun {
    fn new(session: String, model_id: String) -> Self {
        let pass = TrainingRequest::new(model_id.clone(), &example_tokens());
        Self { session, model_id, seq_id: 0, pass }
    }

    fn next(&mut self) -> i64 {
        self.seq_id += 1;
        self.seq_id
    }
}

/// A sampling session of the client.
#[derive(Clone)]
pub(super) struct Sampler {
    id: String,
}

fn accepted(path: &'static str, answer: Answer) -> Result<Value, Failure> {
    if answer.status == 200 {
        return parse(path, &answer.body);
    }
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    Err(Failure::Refused { path, status: answer.status, text })
}

fn parse(path: &'static str, body: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(body)
        .map_err(|_| Failure::Unexpected { path, text: String::from_utf8_lossy(body).into_owned() })
}

fn text(path: &'static str, value: &Value, field: &str) -> Result<String, Failure> {
    let unexpected = || Failure::Unexpected { path, text: value.to_string() };
    Ok(value[field].as_str().ok_or_else(unexpected)?.to_owned())
}

//! Client of Trainyard, a training service for language models.
//!
//! [`Client`] opens a session, creates [`TrainingRun`]s and [`Sampler`]s, and resumes runs from checkpoints. A request
//! is [`Submitted`] at once, and requests are executed in order; awaiting one returns its result. Failures that may
//! pass, such as a restarting server, are retried according to [`RetryPolicy`]. Retries have the same numbers, so that
//! nothing is executed twice.
//!
//! [`Api`] has every operation of the service by its name, with the [`types`] of its bodies. Both are generated from
//! the API's description.
//!
//! ```no_run
//! use trainyard_client::types::{AdamParamsBody, LoraConfig};
//! use trainyard_client::{Client, Datum, Loss, NewRun, SampleOptions};
//!
//! # async fn program() -> Result<(), trainyard_client::Error> {
//! let client = Client::builder().base_url("http://127.0.0.1:8000").build()?;
//! let run = client.create_run(NewRun::of("model").lora(LoraConfig::new(16))).await?;
//! let pass = run.forward_backward(&[Datum::next_token(&[1, 2, 3, 4])], &Loss::cross_entropy()).await?;
//! run.optim_step(AdamParamsBody::new().learning_rate(1e-3)).await?;
//! println!("loss {}", pass.await?.loss());
//! let sampler = run.sampler().await?;
//! let sample = sampler.sample(&[1, 2], &SampleOptions::new().max_tokens(8)).await?.await?;
//! println!("{:?}", sample.sequences[0].tokens);
//! let path = run.save_state("done").await?.await?;
//! let resumed = client.resume_run(&path).await?;
//! # drop(resumed);
//! client.close().await
//! # }
//! ```

mod api;
mod client;
mod codec;
mod data;
mod error;
mod events;
mod future;
#[rustfmt::skip]
#[allow(clippy::all, clippy::unwrap_used, reason = "generated")]
mod generated;
mod image;
mod order;
mod output;
mod proto;
mod request;
mod resample;
mod retry;
mod run;
mod sampler;
mod session;

pub use api::Api;
pub use client::{Client, ClientBuilder, NewRun, ResumeRun};
pub use data::{Datum, Loss, Tensor, TensorData};
pub use error::{ApiError, Category, Error, RequestFailed};
pub use events::EventStream;
pub use future::Submitted;
pub use generated::{administration, agents, catalogue, sessions, types, weights};
pub use image::Image;
pub use output::{Candidates, OptimOutput, SampleOutput, SampledSequence, StopReason, TrainingOutput};
pub use retry::RetryPolicy;
pub use run::{SaveOptions, TrainingRun};
pub use sampler::{SampleOptions, Sampler};

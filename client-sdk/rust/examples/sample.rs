//! Sampling: tokens with their log-probabilities, and a conversation as it is written.
//!
//! `cargo run -p trainyard-client --example sample [MODEL]`, beside a server.

use trainyard_client::types::{ChatMessage, ChatRequest};
use trainyard_client::{Client, Error, SampleOptions};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::builder().tag("example").build()?;
    let models = client.api().get_server_capabilities().await?.supported_models;
    let model = std::env::args().nth(1).unwrap_or_else(|| models[0].model_name.clone());

    let sampler = client.sampler(&model).await?;
    let options = SampleOptions::new().max_tokens(8).num_samples(2).seed(1).topk_sample_logprobs(3);
    let output = sampler.sample(&[40, 41, 42], &options).await?.await?;
    for sequence in &output.sequences {
        eprintln!("{:?}: {:?} with {:?}", sequence.stop_reason, sequence.tokens, sequence.logprobs);
    }

    let message = ChatMessage::new("user").content("What is the capital of France?".into());
    let mut events = match client.stream_chat(&ChatRequest::new(vec![message], &model).max_tokens(32)).await {
        Ok(events) => events,
        // Not every model has a chat template.
        Err(Error::Api(refusal)) if refusal.status == 400 => {
            eprintln!("no conversation: {}", refusal.detail);
            return client.close().await;
        }
        Err(error) => return Err(error),
    };
    while let Some(event) = events.next().await? {
        eprint!("{}", event["choices"][0]["delta"]["content"].as_str().unwrap_or_default());
    }
    eprintln!();
    client.close().await
}

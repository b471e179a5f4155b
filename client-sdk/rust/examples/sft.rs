//! Supervised learning: an adapter learns a few sequences of tokens by heart, is saved, and is sampled from.
//!
//! `cargo run -p trainyard-client --example sft [MODEL]`, beside a server.

use trainyard_client::types::{AdamParamsBody, LoraConfig};
use trainyard_client::{Client, Datum, Error, Loss, NewRun, SampleOptions, SaveOptions};

const STEPS: usize = 10;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::builder().tag("example").build()?;
    let models = client.api().get_server_capabilities().await?.supported_models;
    let model = std::env::args().nth(1).unwrap_or_else(|| models[0].model_name.clone());
    let run = client.create_run(NewRun::of(&model).lora(LoraConfig::new(16).seed(1))).await?;
    eprintln!("training {} on {model}", run.id());

    let counting: Vec<i32> = (40..72).collect();
    let even: Vec<i32> = (40..104).step_by(2).collect();
    let data = [Datum::next_token(&counting), Datum::next_token(&even)];
    let adam = AdamParamsBody::new().learning_rate(5e-3);
    // All steps are submitted at once: the server executes them in this order.
    let mut passes = Vec::new();
    for _ in 0..STEPS {
        passes.push(run.forward_backward(&data, &Loss::cross_entropy()).await?);
        let _ = run.optim_step(adam.clone()).await?;
    }
    for (step, pass) in passes.into_iter().enumerate() {
        eprintln!("step {step}: loss {:.3}", pass.await?.loss());
    }

    let path = run.save_state_with("sft-example", &SaveOptions::new().overwrite(true)).await?.await?;
    eprintln!("saved {path}");
    let sampler = run.sampler().await?;
    let options = SampleOptions::new().max_tokens(8).temperature(0.0);
    let sample = sampler.sample(&counting[..8], &options).await?.await?;
    eprintln!("after {:?}: {:?}", &counting[..8], sample.sequences[0].tokens);
    client.close().await
}

//! Trains, samples, saves and resumes, and prints what the server returned as one line of JSON: for tests that compare it
//! with what other clients get, and kill the server meanwhile.
//!
//! Arguments: model, rank, seed, learning rate, prompt, most tokens, the name of the checkpoint, and the sequences to
//! train on, one for each step; lists in JSON. A line `step N` on the standard error says which step comes next.

use std::io::Write;

use trainyard_client::types::{AdamParamsBody, LoraConfig};
use trainyard_client::{Client, Datum, Loss, NewRun, SampleOptions};

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, rank, seed, rate, prompt, most, name, sequences] = &arguments[..] else {
        return Err("eight arguments are needed".into());
    };
    let prompt: Vec<i32> = serde_json::from_str(prompt)?;
    let sequences: Vec<Vec<i32>> = serde_json::from_str(sequences)?;
    let client = Client::builder().build()?;
    let lora = LoraConfig::new(rank.parse()?).seed(seed.parse()?);
    let run = client.create_run(NewRun::of(model).lora(lora)).await?;
    let adam = AdamParamsBody::new().learning_rate(rate.parse()?).beta1(0.9).beta2(0.95).eps(1e-8);
    let mut passes = Vec::new();
    for (step, tokens) in sequences.iter().enumerate() {
        eprintln!("step {step}");
        passes.push(run.forward_backward(&[Datum::next_token(tokens)], &Loss::cross_entropy()).await?);
        let _ = run.optim_step(adam.clone()).await?;
    }
    let mut losses = Vec::new();
    for pass in passes {
        losses.push(pass.await?.loss());
    }
    let options = SampleOptions::new().max_tokens(most.parse()?).temperature(0.0).stop::<String>([]);
    let sample = run.sampler().await?.sample(&prompt, &options).await?.await?;
    let path = run.save_state(name).await?.await?;
    eprintln!("step {}", sequences.len());
    let resumed = client.resume_run(&path).await?;
    let loss = resumed.forward(&[Datum::next_token(&sequences[0])], &Loss::cross_entropy()).await?.await?.loss();
    client.close().await?;
    let sequence = &sample.sequences[0];
    // As doubles, which JSON writes so that they are read back to the bit.
    let logprobs: Vec<f64> = sequence.logprobs.iter().flatten().map(|it| f64::from(*it)).collect();
    let outcome =
        serde_json::json!({"losses": losses, "sampled": sequence.tokens, "logprobs": logprobs, "resumed_loss": loss});
    writeln!(std::io::stdout(), "{outcome}")?;
    Ok(())
}

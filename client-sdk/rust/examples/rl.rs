//! Reinforcement learning: the reward of a completion is the share of its tokens that are even.
//!
//! `cargo run -p trainyard-client --example rl [MODEL]`, beside a server.

use trainyard_client::types::{AdamParamsBody, LoraConfig};
use trainyard_client::{Client, Datum, Error, Loss, NewRun, SampleOptions, SampledSequence};

const STEPS: i64 = 8;
const GROUP: u32 = 8;
const PROMPT: [i32; 4] = [40, 41, 42, 43];

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::builder().tag("example").build()?;
    let models = client.api().get_server_capabilities().await?.supported_models;
    let model = std::env::args().nth(1).unwrap_or_else(|| models[0].model_name.clone());
    let run = client.create_run(NewRun::of(&model).lora(LoraConfig::new(16).seed(1))).await?;
    for step in 0..STEPS {
        let sampler = run.sampler().await?;
        let options = SampleOptions::new().max_tokens(12).num_samples(GROUP).seed(step).stop::<String>([]);
        let group = sampler.sample(&PROMPT, &options).await?.await?.sequences;
        let rewards: Vec<f32> = group.iter().map(reward).collect();
        let mean = rewards.iter().sum::<f32>() / rewards.len() as f32;
        let data: Vec<Datum> =
            group.iter().zip(&rewards).map(|(sequence, reward)| datum(sequence, reward - mean)).collect();
        let pass = run.forward_backward(&data, &Loss::importance_sampling()).await?;
        let update = run.optim_step(AdamParamsBody::new().learning_rate(2e-3)).await?;
        pass.await?;
        update.await?;
        eprintln!("step {step}: mean reward {mean:.3}");
    }
    client.close().await
}

fn reward(sequence: &SampledSequence) -> f32 {
    let even = sequence.tokens.iter().filter(|token| *token % 2 == 0).count();
    even as f32 / sequence.tokens.len().max(1) as f32
}

/// Prompt and completion; only the completion's tokens have an advantage.
fn datum(sequence: &SampledSequence, advantage: f32) -> Datum {
    let tokens: Vec<i32> = PROMPT.iter().chain(&sequence.tokens).copied().collect();
    let before = PROMPT.len() - 1;
    let targets: Vec<i64> = tokens[1..].iter().map(|token| i64::from(*token)).collect();
    let sampled = sequence.logprobs.clone().unwrap_or_default();
    let logprobs: Vec<f32> = vec![0.0; before].into_iter().chain(sampled).collect();
    let mut advantages = vec![0.0_f32; before];
    advantages.resize(targets.len(), advantage);
    Datum::new(&tokens[..tokens.len() - 1])
        .input("target_tokens", targets)
        .input("logprobs", logprobs)
        .input("advantages", advantages)
}

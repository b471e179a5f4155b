//! Shares of tenants in a saturated engine, and the latency of short requests beside large ones.

use std::num::NonZeroU32;

use trainyard_gpu_runtime::Dtype;
use trainyard_gpu_runtime::backend::cpu::{Blocking, Isa};
use trainyard_protocol::{Datum, Engine, Operation, RequestId, SamplerSource, Stop, TenantShare};

use crate::support::*;

fn share(name: &str, weight: u32) -> TenantShare {
    TenantShare { weight: NonZeroU32::new(weight).unwrap(), ..TenantShare::new(name) }
}

/// Examples of `length` tokens each, `total` in all.
fn data(length: usize, total: usize, seed: usize) -> Vec<Datum> {
    (0..total / length).map(|i| datum(&tokens(length + 1, 512, seed + i))).collect()
}

/// Steps until a request is complete.
fn steps(d: &mut Driver, id: &RequestId) -> usize {
    let steps = (1..100).find(|_| {
        d.tick();
        d.is_done(id)
    });
    steps.unwrap()
}

#[test]
fn a_short_request_waits_for_at_most_three_microbatches() {
    for (length, alone, forward_only) in
        [(250, false, false), (250, true, false), (8, false, false), (500, false, true)]
    {
        let mut d = Driver::open(&golden("llama"), Dtype::Bf16);
        d.create("a", Some(lora(4, 1)));
        d.create("b", (!alone).then(|| lora(2, 2)));
        // As many tokens as a request may have examples for.
        let tokens = (60_000 * length).min(1_000_000);
        d.start_for(share("a", 1), loss_op("a", data(length, tokens, 0), forward_only));
        (0..5).for_each(|_| d.tick());
        let short = d.start_for(share("b", 1), loss_op("b", data(64, 256, 7), false));
        let steps = steps(&mut d, &short);
        assert!(steps <= 3, "{steps} microbatches beside examples of {length}");
    }
}

#[test]
fn a_short_prompt_waits_for_at_most_as_many_rows_as_three_passes_have() {
    let mut d = Driver::open(&golden("llama"), Dtype::Bf16);
    let ask = |n: usize, seed: usize| {
        let base = SamplerSource::Base { model: "m".into() };
        Operation::Sample(Box::new(sample(base, tokens(n, 512, seed), 1, params(1, 1.0, 1))))
    };
    (0..300).for_each(|i| drop(d.start_for(share("a", 1), ask(500, i))));
    (0..5).for_each(|_| d.tick());
    let before = d.engine.stats().prompt_tokens;
    let short = d.start_for(share("b", 1), ask(256, 1000));
    let steps = steps(&mut d, &short);
    let rows = d.engine.stats().prompt_tokens - before;
    assert!(rows <= 3 * 256, "{rows} rows in {steps} passes");
}

#[test]
fn passes_are_narrow_while_another_tenant_trains() {
    let mut d = Driver::open(&golden("llama"), Dtype::Bf16);
    d.create("b", Some(lora(2, 2)));
    let ask = |seed: usize| {
        let base = SamplerSource::Base { model: "m".into() };
        let params = trainyard_protocol::SamplingParams { stop: Stop::Nothing, ..params(400, 1.0, 1) };
        Operation::Sample(Box::new(sample(base, tokens(4, 512, seed), 1, params)))
    };
    (0..300).for_each(|i| drop(d.start_for(share("a", 1), ask(i))));
    (0..20).for_each(|_| d.tick());
    let width = |d: &mut Driver, steps: usize| {
        let before = d.engine.stats();
        (0..steps).for_each(|_| d.tick());
        let after = d.engine.stats();
        (after.sampled_tokens - before.sampled_tokens) / (after.sampling_passes - before.sampling_passes)
    };
    assert_eq!(width(&mut d, 5), 256, "nobody else waits");
    for seed in 0..3 {
        let pass = d.start_for(share("b", 1), loss_op("b", data(64, 256, seed), false));
        steps(&mut d, &pass);
        let step = d.start_for(share("b", 1), optim("b", 1e-4));
        assert!(steps(&mut d, &step) <= 3);
        let between = width(&mut d, 5);
        // As many as the processor computes in twice the time of reading weights: most with AMX, few in plain Rust.
        let least = Blocking::detect(Isa::detect()).balanced_rows(Dtype::Bf16).min(16) as u64 / 2;
        assert!((least..=64).contains(&between), "{between} rows after step {seed}");
    }
    width(&mut d, 64);
    assert_eq!(width(&mut d, 5), 256, "nobody else waits again");
}

#[test]
fn active_sequences_of_others_do_not_block_admission() {
    let mut d = Driver::open(&golden("llama"), Dtype::Bf16);
    let ask = |new: u32, seed: usize| {
        let base = SamplerSource::Base { model: "m".into() };
        Operation::Sample(Box::new(sample(base, tokens(4, 512, seed), 1, params(new, 1.0, 1))))
    };
    (0..300).for_each(|i| drop(d.start_for(share("a", 1), ask(400, i))));
    (0..20).for_each(|_| d.tick());
    let short = d.start_for(share("b", 1), ask(4, 1000));
    let steps = steps(&mut d, &short);
    assert!(steps <= 6, "{steps} passes");
}

#[test]
fn control_operations_take_turns() {
    let mut d = Driver::open(&golden("llama"), Dtype::Bf16);
    for run in ["a", "b"] {
        d.create(run, Some(lora(2, 1)));
    }
    let save = |run: &str, key: usize| {
        Operation::SaveSampler(trainyard_protocol::SaveSampler {
            run: trainyard_protocol::RunId::new(run),
            snapshot: Some(key.to_string()),
            target: None,
        })
    };
    (0..50).for_each(|key| drop(d.start_for(share("a", 1), save("a", key))));
    let other = d.start_for(share("b", 1), save("b", 100));
    assert!(steps(&mut d, &other) <= 2);
    // Passes run between them.
    let pass = d.start_for(share("b", 1), loss_op("b", data(64, 256, 7), false));
    assert!(steps(&mut d, &pass) <= 2);
}

/// Jain's index: 1 when all are equal, 1 / n when one has everything.
fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = (shares.iter().sum::<f64>(), shares.iter().map(|x| x * x).sum::<f64>());
    sum * sum / (shares.len() as f64 * squares)
}

/// A tenant that always has requests.
struct Load {
    share: TenantShare,
    requests: Vec<(RequestId, usize)>,
    served: usize,
}

/// Runs `steps` steps in which every completed request is submitted anew; counts the tokens served to each tenant.
fn saturate(
    d: &mut Driver,
    steps: usize,
    loads: &mut [Load],
    resubmit: impl Fn(&mut Driver, &TenantShare, usize) -> RequestId,
) {
    for _ in 0..steps {
        d.tick();
        for load in loads.iter_mut() {
            let done: Vec<usize> = (0..load.requests.len()).filter(|i| d.is_done(&load.requests[*i].0)).collect();
            for i in done {
                let tokens = load.requests[i].1;
                d.forget(&load.requests[i].0);
                load.served += tokens;
                load.requests[i].0 = resubmit(d, &load.share, i);
            }
        }
    }
}

#[test]
fn equal_weights_get_equal_shares_of_training() {
    let mut d = Driver::open(&golden("llama"), Dtype::Bf16);
    let lengths = [16, 40, 64, 100, 129, 200, 250, 128];
    // The last tenant trains all parameters: it never shares a pass.
    let request = |share: &TenantShare, i: usize| {
        let of: usize = share.name.parse().unwrap();
        loss_op(&format!("{of}.{i}"), data(lengths[of], lengths[of] * 4, i), false)
    };
    let mut loads = Vec::new();
    for (of, length) in lengths.iter().enumerate() {
        let share = share(&of.to_string(), 1);
        let requests = (0..2).map(|i| {
            d.create(&format!("{of}.{i}"), (of < 7).then(|| lora(2, 1)));
            (d.start_for(share.clone(), request(&share, i)), length * 4)
        });
        loads.push(Load { requests: requests.collect(), share: share.clone(), served: 0 });
    }
    saturate(&mut d, 400, &mut loads, |d, share, i| d.start_for(share.clone(), request(share, i)));
    let shares: Vec<f64> = loads.iter().map(|load| load.served as f64).collect();
    assert!(jain(&shares) >= 0.95, "{shares:?}");
}

#[test]
fn shares_of_training_are_proportional_to_weights() {
    let mut d = Driver::open(&golden("llama"), Dtype::Bf16);
    let request = |share: &TenantShare| loss_op(&share.name, data(40, 120, 1), false);
    let mut loads = Vec::new();
    for (name, weight) in [("one", 1), ("two", 2), ("five", 5)] {
        d.create(name, Some(lora(2, 1)));
        loads.push(Load { requests: Vec::new(), share: share(name, weight), served: 0 });
        // Several at once, so that the tenant is always backlogged.
        let load = loads.last_mut().unwrap();
        load.requests = (0..4).map(|_| (d.start_for(load.share.clone(), request(&load.share)), 120)).collect();
    }
    saturate(&mut d, 300, &mut loads, |d, share, _| d.start_for(share.clone(), request(share)));
    let shares: Vec<f64> = loads.iter().map(|l| l.served as f64 / f64::from(l.share.weight.get())).collect();
    assert!(jain(&shares) >= 0.99, "{shares:?}");
}

#[test]
fn equal_weights_get_equal_shares_of_sampling() {
    let mut d = Driver::open(&golden("llama"), Dtype::Bf16);
    let shape = |of: usize| ([5, 100, 40, 10, 64, 128, 30, 77][of], [40, 4, 20, 60, 10, 1, 30, 16][of]);
    let request = |share: &TenantShare, i: usize| {
        let of: usize = share.name.parse().unwrap();
        let (prompt, new) = shape(of);
        let base = SamplerSource::Base { model: "m".into() };
        let params = trainyard_protocol::SamplingParams { stop: Stop::Nothing, ..params(new, 1.0, 1) };
        Operation::Sample(Box::new(sample(base, tokens(prompt, 512, of * 1000 + i), 1, params)))
    };
    let mut loads = Vec::new();
    for of in 0..8 {
        let (prompt, new) = shape(of);
        let share = share(&of.to_string(), 1);
        let requests =
            (0..100).map(|i| (d.start_for(share.clone(), request(&share, i)), prompt + new as usize)).collect();
        loads.push(Load { requests, share, served: 0 });
    }
    // A request counts when it ends, and those of a share that decodes for long end together: so many tokens that those in
    // progress hardly matter, in as many passes as the processor's narrow or wide ones need.
    for _ in 0..100 {
        saturate(&mut d, 200, &mut loads, |d, share, i| d.start_for(share.clone(), request(share, i)));
        if loads.iter().map(|load| load.served).sum::<usize>() >= 300_000 {
            break;
        }
    }
    let shares: Vec<f64> = loads.iter().map(|load| load.served as f64).collect();
    assert!(jain(&shares) >= 0.95, "{shares:?}");
}

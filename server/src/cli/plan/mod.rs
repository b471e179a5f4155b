//! `trainyard plan`: estimates the memory and the speed of a layout, before there is a machine for it.

mod flags;
mod table;

use std::error::Error;
use std::io::{self, Write};

pub(super) use flags::PlanFlags;
use serde::Serialize;
use trainyard_gpu_runtime::plan::{Device, Network, Plan, plan as plan_layout};

use crate::config::WeightForm;

#[derive(Debug, Serialize)]
struct Printed {
    model: String,
    family: &'static str,
    device: Device,
    network: Network,
    dtype: &'static str,
    /// The form of the base weights, if one is asked for.
    weights: Option<&'static str>,
    /// The parameters that the run trains.
    trains: String,
    microbatch_tokens: usize,
    microbatches: usize,
    context: usize,
    sequences: usize,
    plan: Plan,
}

/// Plans and prints.
///
/// # Errors
/// Fails if flags are invalid, or the ranks can't share the model; the error names the flag.
pub(super) fn plan(flags: &PlanFlags) -> Result<(), Box<dyn Error>> {
    let printed = planned(flags)?;
    let mut out = io::stdout().lock();
    if flags.json {
        serde_json::to_writer_pretty(&mut out, &printed)?;
        writeln!(out)?;
    } else {
        table::write(&mut out, &printed)?;
    }
    Ok(())
}

fn planned(flags: &PlanFlags) -> Result<Printed, Box<dyn Error>> {
    let (config, device, network) = (flags.config()?, flags.device()?, flags.network());
    let work = flags.work(flags.blocks(&config)?);
    let plan = plan_layout(&config, flags.parallel, &device, &network, &work)?;
    let trains = match &work.lora {
        Some(lora) => format!("LoRA of rank {}", lora.rank),
        None => "all parameters".to_owned(),
    };
    Ok(Printed {
        model: flags.model.clone(),
        family: config.arch,
        device,
        network,
        dtype: work.dtype.name(),
        weights: flags.weights.map(WeightForm::name),
        trains,
        microbatch_tokens: work.microbatch_tokens,
        microbatches: work.microbatches,
        context: work.context,
        sequences: work.sequences,
        plan,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        flags: PlanFlags,
    }

    fn run(args: &str) -> Result<Printed, String> {
        let flags = Program::try_parse_from(std::iter::once("plan").chain(args.split_whitespace()));
        planned(&flags.map_err(|error| error.to_string())?.flags).map_err(|error| error.to_string())
    }

    fn golden(family: &str) -> String {
        format!("{}/../tests/golden/{family}", env!("CARGO_MANIFEST_DIR"))
    }

    fn table(args: &str) -> String {
        let mut out = Vec::new();
        table::write(&mut out, &run(args).unwrap()).unwrap();
        String::from_utf8(out).unwrap()
    }

    const CPU: &str = "--device cpu --flops 1e11 --bandwidth 1e10 --memory 1GiB --microbatch-tokens 64 --context 64";

    #[test]
    fn models_are_given_by_name_folder_or_file() {
        assert_eq!(run("--model llama-3.1-8b").unwrap().plan.parameters, 8_030_261_248);
        let of = |path: String| run(&format!("--model {path} {CPU}")).unwrap();
        let (folder, file) = (of(golden("qwen2")), of(golden("qwen2/config.json")));
        assert_eq!((folder.family, folder.plan == file.plan), ("qwen2", true));
    }

    #[test]
    fn packed_weights_are_counted() {
        let base = |weights: &str| {
            run(&format!("--model {} {CPU} {weights}", golden("qwen2"))).unwrap().plan.memory.base_weights
        };
        let (wide, q8, q4) = (base(""), base("--weights q8"), base("--weights q4"));
        assert!(q4 < q8 && q8 < wide, "{q4} {q8} {wide}");
        assert_eq!(base("--weights bf16"), wide);
        assert_eq!(base("--weights file"), wide, "a folder without blocks");
        let refused = |args: &str| run(&format!("--model llama-3.1-8b {args}")).unwrap_err();
        assert!(refused("--weights q4").contains("--weights requires --device cpu"));
        let ranks = refused(&format!("{CPU} --weights q4 --parallel tp=2"));
        assert!(ranks.contains("--weights q4: requires a --parallel without tp and ep"), "{ranks}");
        let shape = refused(&format!("{CPU} --weights file"));
        assert!(shape.contains("--model llama-3.1-8b is not a file with weights"), "{shape}");
        assert!(refused("--weights q4 --full").contains("--full"));
    }

    #[test]
    fn a_table_says_what_limits_and_what_does_not_run() {
        let fits = table("--model llama-3.1-8b --parallel tp=8");
        for part in ["llama-3.1-8b", "tp=8", "base weights", "rows within blocks", "tokens/s", "limited by"] {
            assert!(fits.contains(part), "{part} is not in\n{fits}");
        }
        let exceeds = table("--model llama-3.1-70b --full");
        assert!(exceeds.contains("does not fit: ") && exceeds.contains("GiB more than"), "{exceeds}");
        let refused = table("--model qwen3-235b-a22b --parallel tp=1,ep=8,dp=512");
        assert!(refused.contains("this version does not run this layout: "), "{refused}");
    }

    #[test]
    fn one_rank_sends_nothing_in_no_time() {
        let alone = table("--model qwen3-8b");
        assert!(alone.contains("collectives 0.000") && !alone.contains("-0.0"), "{alone}");
        let json = serde_json::to_value(run("--model qwen3-8b").unwrap()).unwrap();
        assert_eq!(json["plan"]["training"]["interconnect"].to_string(), "0.0");
    }

    #[test]
    fn the_help_lists_every_shape() {
        let help = Program::command().render_long_help().to_string();
        for name in trainyard_gpu_runtime::plan::shape_names() {
            assert!(help.contains(name), "{name} is not in {help}");
        }
    }

    #[test]
    fn json_has_what_the_table_has() {
        let printed = run(&format!("--model {} --parallel tp=2 {CPU}", golden("llama"))).unwrap();
        let json = serde_json::to_value(&printed).unwrap();
        assert_eq!(json["plan"]["layout"]["tp"], 2);
        assert_eq!(json["plan"]["memory"]["base_weights"], printed.plan.memory.base_weights);
        assert_eq!(json["plan"]["training_moved"][0]["kind"], "all_reduce");
        assert_eq!(json["plan"]["refusal"], serde_json::Value::Null);
    }

    #[test]
    fn bad_input_is_refused_by_name() {
        for (args, expected) in [
            ("--model nowhere", "--model nowhere: "),
            (
                "--model llama-3.1-8b --device h800",
                "--device h800: unknown; devices are a100, h100, h200, b200 and cpu",
            ),
            ("--model llama-3.1-8b --parallel pp=2", "unknown axis \"pp\""),
            ("--model llama-3.1-8b --parallel tp=3", "tp=3 does not fit the model: num_key_value_heads"),
            ("--model llama-3.1-8b --parallel ep=2", "ep=2 does not fit the model: it has no experts"),
            (
                "--model qwen3-235b-a22b --parallel ep=3",
                "ep=3 does not fit the model: its 3 ranks do not divide the 128 experts",
            ),
            ("--model llama-3.1-8b --link 4x", "invalid link \"4x\""),
            ("--model llama-3.1-8b --flops 1e12", "--flops requires --device cpu"),
            ("--model llama-3.1-8b --kernels avx2", "--kernels requires --device cpu"),
            ("--model llama-3.1-8b --device cpu --flops 0", "--flops must be a positive number"),
            ("--model llama-3.1-8b --rank 0", "the rank of the adapter must be at least 1"),
            ("--model llama-3.1-8b --context 200000", "a context of 200000 tokens exceeds the model's 131072"),
            ("--model llama-3.1-8b --gpus-per-node 0", "the number of devices of a machine must be at least 1"),
            ("--model llama-3.1-8b --full --rank 4", "cannot be used with"),
        ] {
            let error = run(args).unwrap_err();
            assert!(error.contains(expected), "{args}: {error}");
        }
        let other = run(&format!("--model {}", golden("README.md"))).unwrap_err();
        assert!(other.contains("neither a folder nor a .gguf file"), "{other}");
    }
}

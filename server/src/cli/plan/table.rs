//! Formats the plan as tables for people.

use std::io::{self, Write};

use trainyard_gpu_runtime::plan::{LinkKind, Moved, Plan, StepTime};

use super::Printed;

const GIB: f64 = (1u64 << 30) as f64;

pub(super) fn write(out: &mut impl Write, printed: &Printed) -> io::Result<()> {
    let Printed { plan, device, .. } = printed;
    let millions = |count: u64| count as f64 / 1e6;
    writeln!(
        out,
        "{} ({}, {:.0} M parameters), {}{}; trains {} ({:.1} M)",
        printed.model,
        printed.family,
        millions(plan.parameters),
        printed.dtype,
        printed.weights.map(|form| format!(", weights {form}")).unwrap_or_default(),
        printed.trains,
        millions(plan.trained_parameters)
    )?;
    let link = match printed.network.between {
        LinkKind::Nvlink => "the same".to_owned(),
        LinkKind::Network(bandwidth) => format!("{:.0} GB/s", bandwidth / 1e9),
    };
    writeln!(
        out,
        "{}: {} ranks of {}, {} per machine with {:.0} GB/s each, {link} between machines",
        plan.layout,
        plan.layout.world(),
        device.name,
        printed.network.per_node,
        device.link.bandwidth / 1e9
    )?;
    if let Some(reason) = &plan.refusal {
        writeln!(out, "this version does not run this layout: {reason}")?;
    }
    memory(out, printed)?;
    let title = format!(
        "Training: {} microbatches of {} tokens on each of {} replicas, sequences of {}",
        printed.microbatches, printed.microbatch_tokens, plan.layout.dp, printed.context
    );
    let tokens = (plan.tokens_per_step / plan.layout.dp) as f64;
    step(out, &title, plan, &plan.training, &plan.training_moved, tokens, plan.training_tokens_per_second)?;
    let title = format!("Sampling: {} sequences of {} tokens on each replica", printed.sequences, printed.context);
    let sequences = printed.sequences as f64;
    step(out, &title, plan, &plan.decoding, &plan.decoding_moved, sequences, plan.sampled_tokens_per_second)?;
    writeln!(
        out,
        "\nAn estimate: {:.0} % of the device's peak in GEMMs, {:.0} % of its memory bandwidth, {:.0} % of links; nothing hides \
         collectives.",
        device.attained.compute * 100.0,
        device.attained.memory * 100.0,
        device.attained.link * 100.0
    )
}

fn memory(out: &mut impl Write, printed: &Printed) -> io::Result<()> {
    let plan = &printed.plan;
    writeln!(out, "\n{:<28} {:>10}", "Memory of each rank", "MiB")?;
    for (name, bytes) in plan.memory.parts().into_iter().filter(|(_, bytes)| *bytes > 0) {
        writeln!(out, "  {name:<26} {:>10.1}", bytes as f64 / (1 << 20) as f64)?;
    }
    writeln!(out, "  {:<26} {:>10.1}", "all", plan.memory.total() as f64 / (1 << 20) as f64)?;
    writeln!(out, "  {} of {} blocks save their activations", plan.saved_blocks, plan.blocks)?;
    if plan.repeated_blocks > 0 {
        writeln!(out, "  not all inputs of the others are kept: {} more blocks are computed", plan.repeated_blocks)?;
    }
    let (total, capacity) = (plan.memory.total() as f64 / GIB, plan.memory_capacity as f64 / GIB);
    match plan.exceeds_by {
        Some(bytes) => {
            writeln!(out, "  does not fit: {:.1} GiB more than the {capacity:.1} GiB of a rank", bytes as f64 / GIB)
        }
        None => writeln!(out, "  fits: {total:.1} of {capacity:.1} GiB"),
    }
}

fn step(
    out: &mut impl Write,
    title: &str,
    plan: &Plan,
    time: &StepTime,
    moved: &[Moved],
    tokens: f64,
    tokens_per_second: f64,
) -> io::Result<()> {
    writeln!(out, "\n{title}")?;
    if !moved.is_empty() {
        let (sent, least) = ("bytes/token", "at least");
        writeln!(out, "  {:<20} {:<6} {:<15} {:>6} {sent:>13} {least:>13}", "each rank sends", "", "", "calls")?;
    }
    for moved in moved {
        writeln!(
            out,
            "  {:<20} {:<6} {:<15} {:>6} {:>13.1} {:>13.1}",
            moved.purpose,
            moved.axis.name(),
            moved.kind.name(),
            moved.calls,
            moved.bytes as f64 / tokens,
            moved.least_bytes / tokens
        )?;
    }
    writeln!(
        out,
        "  {:.3} ms a step: compute {:.3}, memory {:.3}, collectives {:.3}",
        time.seconds * 1e3,
        time.compute * 1e3,
        time.memory * 1e3,
        time.interconnect * 1e3
    )?;
    let limit = if plan.exceeds_by.is_some() { "memory capacity" } else { time.limit.name() };
    writeln!(out, "  {tokens_per_second:.1} tokens/s, limited by {limit}")
}

//! Checks with the shapes of real models: accuracy in bf16, and batch invariance.
//!
//! The op suite has small inputs, on which kernels for large ones never run: a device can pass it on which no model works. These
//! checks run one layer of an 8B model, every width of heads, numbers of rows on both sides of each that chooses another
//! kernel, mixers and experts. [`Scale`] is a parameter: tests on simulated devices run the same code with small extents.
//!
//! Tolerances are relative to the largest element of a row, or to the root mean square of all rows if that is more:
//!
//! - [`ROUNDED`], for bf16 against f32. Rounding to bf16 has errors of at most 2⁻⁹ and about 2⁻⁹/√3 on average (its
//!   significand has 8 bits). A result behind `n` roundings has √n times that. With n = 12, the largest of 10⁷ errors at 5.3
//!   standard deviations, and a row's largest element at about 4, that is 5e-3. The tolerance is four times that.
//! - [`LAYER`], for the whole layer in bf16: twice the error that a processor with bf16 tiles has in it (2.1e-2 with small
//!   sizes, in the gradient of q's adapter, for which attention subtracts nearly equal sums). A wrong element has ten times that.
//! - [`SUMS`], for f32 against the processor's f32: sums of up to some thousand terms in another order, 2⁻²⁴ · √1000 · 5
//!   ≈ 1e-5, ten times that.

mod compare;
mod decode;
mod invariance;
mod layer;
mod numbers;
mod projection;
mod scale;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::{HostAccess, attention, difference, experts, recurrences};
use crate::fault::{DeviceFault, Fault, panic_text};
use crate::{AttentionShape, Dtype, HostBackend, RouterRule};
use compare::{Named, compare};
use decode::{decoded, last_rows};
use invariance::{Direction, Subject};
use layer::Layer;
use numbers::Tile;
use projection::Projection;
pub use scale::Scale;
use scale::{DECODED, EXPERTS_OF_TOKEN, HEAD_DIMS, PROJECTED};

/// Tolerance of results that were computed in bf16.
const ROUNDED: f32 = 2e-2;
/// Tolerance of results of a whole layer in bf16.
const LAYER: f32 = 5e-2;
/// Tolerance of sums in f32 in another order.
const SUMS: f32 = 1e-4;

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Results are as they have to be.
    Holds,
    /// Results are wrong, or the device failed.
    Wrong,
    /// The device has too little memory for the check.
    NotRun,
}

/// What a check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subjects {
    /// Results against other ones, with a tolerance.
    Accuracy,
    /// The same bits in batches of other sizes.
    Invariance,
}

/// A check with a real shape.
#[derive(Clone, Debug, PartialEq)]
pub struct ShapeCheck {
    /// What the check is about.
    pub of: Subjects,
    /// Ops, extents and element type.
    pub name: String,
    /// Whether the device passed.
    pub verdict: Verdict,
    /// Numbers of the result, or the reason why it is wrong.
    pub detail: String,
    /// Largest error of a row, relative to its largest element.
    pub error: Option<f32>,
    /// Largest error that passes.
    pub tolerance: Option<f32>,
    /// Duration of the check.
    pub seconds: f64,
}

/// Runs all checks: on a device with bf16 weights, on the same device with f32 weights, and on the processor as far as results are
/// compared with its own. A device that fails entirely ends them.
pub fn check_shapes<B: HostAccess>(rounded: &B, exact: &B, host: &HostBackend, scale: &Scale) -> Vec<ShapeCheck> {
    let mut run = Run { devices: [rounded, exact], scale: *scale, found: Vec::new() };
    run.layers();
    run.against_host(host);
    run.found
}

/// Checks that are in progress on a device.
struct Run<'a, B: HostAccess> {
    /// The device with bf16 weights, and with f32 weights.
    devices: [&'a B; 2],
    scale: Scale,
    found: Vec<ShapeCheck>,
}

/// The result that differs most, and by how much.
fn differing(found: &[Named], expected: &[Named]) -> Result<(&'static str, f32), String> {
    compare(found, expected, f32::INFINITY).map(|worst| (worst.name, worst.error))
}

/// Result of a check: a text, with the error of what was compared.
struct Outcome {
    detail: String,
    error: Option<f32>,
    holds: bool,
}

impl<B: HostAccess> Run<'_, B> {
    /// The layer's checks: its weights are made once.
    fn layers(&mut self) {
        let (tile, scale) = (Tile::new(), self.scale);
        let [rounded, exact] = self.devices;
        let mut layers = None;
        self.check(Subjects::Accuracy, "weights of a layer".to_owned(), None, || {
            layers = Some([rounded, exact].map(|b| Layer::new(b, &tile, &scale)));
            Ok(Outcome { detail: format!("{} sizes", scale.name), error: None, holds: true })
        });
        let Some([layer, exact_layer]) = layers else { return };
        let Scale { hidden, intermediate, rank, vocab, sequences, .. } = scale;
        let name = format!(
            "layer of {hidden}, heads {:?}, MLP of {intermediate}, rank {rank}, {vocab} tokens, {} rows",
            scale.heads,
            scale.rows()
        );
        let pass = |b: &B, layer: &Layer<B>| layer.pass(b, &tile, sequences);
        self.accuracy(&name, LAYER, || pass(rounded, &layer), || pass(exact, &exact_layer));
        for rows in PROJECTED {
            let (own, other) = (&layer.o, &exact_layer.o);
            let name = format!("projection {} → {} with an adapter, {rows} rows", own.inputs, own.outputs);
            let [found, expected] =
                [(rounded, own), (exact, other)].map(|(b, of)| move |tile: &Tile| of.pass(b, tile, rows));
            self.accuracy(&name, ROUNDED, || found(&tile), || expected(&tile));
        }
        self.invariance(&tile, rounded, &layer);
        self.invariance(&tile, exact, &exact_layer);
    }

    /// Compares what the device makes with bf16 weights with what it makes with f32 weights.
    fn accuracy(
        &mut self,
        name: &str,
        tolerance: f32,
        found: impl FnOnce() -> Vec<Named>,
        expected: impl FnOnce() -> Vec<Named>,
    ) {
        let name = format!("{name}, bf16 against f32");
        self.check(Subjects::Accuracy, name, Some(tolerance), || {
            compare(&found(), &expected(), tolerance).map(|worst| Outcome {
                detail: format!(
                    "error {:.1e} ({}, row {}), at most {tolerance:.0e}",
                    worst.error, worst.name, worst.row
                ),
                error: Some(worst.error),
                holds: worst.error <= tolerance,
            })
        });
    }

    /// The same bits for a row in batches of all sizes: products with each weight in both directions, adapters, attention.
    fn invariance(&mut self, tile: &Tile, b: &B, layer: &Layer<B>) {
        let counts = self.scale.counts;
        let layers = [
            ("q, k and v", &layer.qkv),
            ("o", &layer.o),
            ("gate and up", &layer.gate_up),
            ("down", &layer.down),
            ("unembedding", &layer.head),
            ("an expert", &layer.expert),
        ];
        for (name, layer) in layers {
            for direction in [Direction::Forward, Direction::Backward] {
                self.same_bits(name, &Subject { layer, direction, adapted: false }, b, tile, counts);
            }
        }
        // Above and below what chooses another kernel for adapters.
        let counts = [&PROJECTED[..], counts].concat();
        for direction in [Direction::Forward, Direction::Backward] {
            let layer = &layer.o;
            self.same_bits("o with adapters", &Subject { layer, direction, adapted: true }, b, tile, &counts);
        }
        for head_dim in HEAD_DIMS {
            let shape = self.scale.prompt_attention(head_dim);
            self.same_attention(b, tile, &shape);
        }
    }

    fn same_bits(&mut self, name: &str, of: &Subject<'_, B>, b: &B, tile: &Tile, counts: &[usize]) {
        let [from, to] = of.widths();
        let backward = of.direction == Direction::Backward;
        let of_pass = if backward { ", backward" } else { "" };
        let name = format!("{name}, {from} → {to}{of_pass}, {}", b.dtype().name());
        self.check(Subjects::Invariance, name, None, || {
            let (holds, mut detail) = match of.check(b, tile, counts) {
                Ok(()) => (true, format!("the same bits among {counts:?} rows")),
                Err(difference) => (false, difference),
            };
            let plans = b.product_plans(of.layer.outputs, of.layer.inputs, backward);
            if !plans.is_empty() {
                detail = format!("{detail}; plan: {plans}");
            }
            Ok(Outcome { detail, error: None, holds })
        });
    }

    /// The same bits for the last row of a prompt, with the others and when it is decoded.
    fn same_attention(&mut self, b: &B, tile: &Tile, shape: &AttentionShape) {
        let name = format!("attention, heads of {}, {}", shape.head_dim, b.dtype().name());
        let scale = self.scale;
        self.check(Subjects::Invariance, name, None, || {
            let (together, decoded) = last_rows(b, tile, shape, scale.together, &DECODED);
            for (copies, decoded) in DECODED.iter().zip(decoded) {
                let found = decoded.chunks_exact(shape.q_width()).map(|row| invariance::difference(&together, row));
                if let Some((row, difference)) = found.enumerate().find_map(|(row, found)| Some((row, found?))) {
                    let detail = format!("the prompt's last row, decoded as row {row} of {copies}, {difference}");
                    return Ok(Outcome { detail, error: None, holds: false });
                }
            }
            let detail = format!("the prompt's last row has the same bits when {DECODED:?} rows are decoded");
            Ok(Outcome { detail, error: None, holds: true })
        });
    }

    /// Compares with the processor: heads of all widths, decoding, projections, mixers, experts.
    fn against_host(&mut self, host: &HostBackend) {
        let (scale, tile) = (self.scale, Tile::new());
        for head_dim in HEAD_DIMS {
            let shape = scale.prompt_attention(head_dim);
            for lens in scale.prompts {
                let name = format!("attention, heads of {head_dim}, prompts of {lens:?} rows");
                let expected = attention(host, shape, lens, None, 40);
                self.typed(&name, |b| difference(&attention(b, shape, lens, None, 40), &expected));
            }
            for rows in DECODED {
                let name = format!("attention, heads of {head_dim}, {rows} decoded");
                let expected = decoded(host, &tile, &shape, rows);
                self.typed(&name, |b| differing(&decoded(b, &tile, &shape, rows), &expected));
            }
        }
        let of_host = Projection::new(host, &tile, &[scale.hidden], scale.hidden, scale.rank, 30);
        for rows in DECODED {
            let name = format!("projection {0} → {0} with an adapter, {rows} rows", scale.hidden);
            let expected = of_host.pass(host, &tile, rows);
            self.typed(&name, |b| {
                let layer = Projection::new(b, &tile, &[scale.hidden], scale.hidden, scale.rank, 30);
                differing(&layer.pass(b, &tile, rows), &expected)
            });
        }
        // These ops are f32 for both types of weights.
        let [b, _] = self.devices;
        for (name, shape) in [("gated delta net", scale.delta_net()), ("Mamba-2", scale.mamba())] {
            let lens = scale.mixer_rows;
            let name = format!(
                "{name}, {} × {} heads of {} × {}, {lens:?} rows",
                shape.key_heads, shape.value_heads, shape.key_dim, shape.value_dim
            );
            let expected = recurrences(host, shape, &lens, 41);
            self.against(&name, SUMS, || difference(&recurrences(b, shape, &lens, 41), &expected));
        }
        let [rows, count, width] = scale.experts;
        let rule = RouterRule::softmax(EXPERTS_OF_TOKEN, true);
        let name = format!("{EXPERTS_OF_TOKEN} of {count} experts, {rows} rows of {width}");
        let expected = experts(host, rule, rows, count, width, 42);
        self.against(&name, SUMS, || difference(&experts(b, rule, rows, count, width, 42), &expected));
    }

    /// Compares for both types of weights.
    fn typed(&mut self, name: &str, compared: impl Fn(&B) -> Result<(&'static str, f32), String>) {
        for b in self.devices {
            let tolerance = if b.dtype() == Dtype::Bf16 { ROUNDED } else { SUMS };
            self.against(&format!("{name}, {}", b.dtype().name()), tolerance, || compared(b));
        }
    }

    fn against(&mut self, name: &str, tolerance: f32, compared: impl FnOnce() -> Result<(&'static str, f32), String>) {
        let name = format!("{name}, against the processor");
        self.check(Subjects::Accuracy, name, Some(tolerance), || {
            compared().map(|(result, error)| Outcome {
                detail: format!("error {error:.1e} ({result}), at most {tolerance:.0e}"),
                error: Some(error),
                holds: error <= tolerance,
            })
        });
    }

    /// Runs a check, unless the device has failed before.
    fn check(
        &mut self,
        of: Subjects,
        name: String,
        tolerance: Option<f32>,
        run: impl FnOnce() -> Result<Outcome, String>,
    ) {
        if self.devices.iter().any(|device| device.failure().is_some()) {
            return;
        }
        let start = Instant::now();
        let (verdict, outcome) = match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(outcome)) => (if outcome.holds { Verdict::Holds } else { Verdict::Wrong }, outcome),
            Ok(Err(detail)) => (Verdict::Wrong, Outcome { detail, error: None, holds: false }),
            Err(panic) => {
                let memory = panic.downcast_ref::<DeviceFault>().is_some_and(|of| of.fault == Fault::OutOfMemory);
                let verdict = if memory { Verdict::NotRun } else { Verdict::Wrong };
                (verdict, Outcome { detail: panic_text(&*panic).to_owned(), error: None, holds: false })
            }
        };
        let Outcome { detail, error, .. } = outcome;
        let seconds = start.elapsed().as_secs_f64();
        self.found.push(ShapeCheck { of, name, verdict, detail, error, tolerance, seconds });
        if self.devices.iter().all(|device| device.failure().is_none()) {
            self.devices.iter().for_each(|device| device.end_pass());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::host_backend;
    use super::*;
    use crate::HostKernels;

    /// Every check passes on the processor, whose kernels for bf16 round where those of GPUs do.
    #[test]
    fn the_processor_passes() {
        let backend = |dtype| HostBackend::with_isa(1, HostKernels::detect()).with_dtype(dtype);
        let [rounded, exact] = [Dtype::Bf16, Dtype::F32].map(backend);
        // TRAINYARD_TEST_FULL computes a layer of an 8B model in both types: minutes.
        let scale = if std::env::var_os("TRAINYARD_TEST_FULL").is_some() { Scale::FULL } else { Scale::SMALL };
        let found = check_shapes(&rounded, &exact, &host_backend(Dtype::F32), &scale);
        for ShapeCheck { name, verdict, detail, seconds, .. } in &found {
            eprintln!("{verdict:?} {seconds:.2} s {name}: {detail}");
        }
        assert!(found.iter().all(|check| check.verdict == Verdict::Holds));
    }
}

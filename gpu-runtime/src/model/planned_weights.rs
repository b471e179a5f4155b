//! Bytes of the weights of a model that are yet to be packed.

use std::collections::BTreeMap;

use super::params::{MlpParams, ParamSpec, ParamTable};
use super::projection::Projection;
use super::weights::Weights;
use crate::backend::{Backend, MatrixRole, PlannedPart};
use crate::blocks::BlockFormat;
use crate::config::ModelConfig;

impl<B: Backend> Weights<B> {
    /// Bytes of widened weights, with the transposes that backward passes need where it `trains`.
    pub(crate) fn planned_bytes(backend: &B, c: &ModelConfig, trains: bool) -> usize {
        Self::planned_bytes_in(backend, c, trains, &BTreeMap::new())
    }

    /// Bytes of weights of which parameters, by name, stay in blocks of these formats. Each matrix is counted as it is packed:
    /// projections of the same input are one, and large ones are rounded to huge pages.
    pub(crate) fn planned_bytes_in(
        backend: &B,
        c: &ModelConfig,
        trains: bool,
        formats: &BTreeMap<String, BlockFormat>,
    ) -> usize {
        let matrix = |parts: &[PlannedPart], inputs: usize| {
            let outputs = parts.iter().map(|part| part.outputs).sum();
            let kept = if formats.is_empty() { None } else { backend.planned_block_bytes(parts, inputs) };
            kept.unwrap_or_else(|| backend.planned_matrix_bytes(outputs, inputs, MatrixRole::Base, trains))
        };
        let table = ParamTable::new(c);
        let of = |spec: &ParamSpec| {
            let [outputs, inputs] = spec.shape[..] else { return 0 };
            matrix(&[PlannedPart { outputs, format: formats.get(&spec.name).copied() }], inputs)
        };
        let block = |layer: usize| {
            let block = &c.blocks[layer];
            let experts = block.experts.as_ref();
            let fused = |of: &&[Projection], module: &dyn Fn(&str) -> String| {
                let part = |p: &Projection| {
                    let name = || format!("model.layers.{layer}.{}.weight", module(p.module(block)));
                    let format = if formats.is_empty() { None } else { formats.get(&name()).copied() };
                    PlannedPart { outputs: p.extents(c, layer).0, format }
                };
                let parts: Vec<PlannedPart> = of.iter().map(part).collect();
                matrix(&parts, of.first().map_or(0, |p| p.extents(c, layer).1))
            };
            let layers = |of: &&[Projection]| {
                let is_routed = of.first().is_some_and(|p| p.is_routed());
                match experts.filter(|_| is_routed) {
                    None => fused(of, &str::to_owned),
                    Some(experts) if formats.is_empty() => experts.held.len() * fused(of, &str::to_owned),
                    Some(experts) => {
                        let expert = |expert: usize| {
                            fused(of, &|module| module.replace("mlp.", &format!("mlp.experts.{expert}.")))
                        };
                        experts.held.clone().map(expert).sum()
                    }
                }
            };
            let router = match &table.blocks[layer].mlp {
                Some(MlpParams::Experts(params)) => of(&table.specs[params.router.weight]),
                Some(MlpParams::Dense(_)) | None => 0,
            };
            router + Projection::layers(c, layer).iter().map(layers).sum::<usize>()
        };
        let blocks: usize = (0..c.num_layers()).map(block).sum();
        let rows = match c.tie_word_embeddings {
            true => 0,
            false => Self::planned_table_bytes(backend, &table.specs[table.embed], formats),
        };
        // Norms and biases, which may be there twice.
        let vectors = 2 * size_of::<f32>() * table.specs.iter().map(ParamSpec::vector_len).sum::<usize>();
        of(&table.specs[table.head]) + rows + blocks + vectors
    }

    /// Bytes of an embedding apart from the unembedding.
    fn planned_table_bytes(backend: &B, spec: &ParamSpec, formats: &BTreeMap<String, BlockFormat>) -> usize {
        let format = formats.get(&spec.name).copied();
        let columns = spec.shape.last().copied().unwrap_or(0);
        let kept = format.filter(|_| {
            backend.planned_block_bytes(&[PlannedPart { outputs: spec.shape[0], format }], columns).is_some()
        });
        match kept {
            Some(format) => spec.len() / format.elements() * format.bytes(),
            None => spec.len() * backend.dtype().bytes(),
        }
    }
}

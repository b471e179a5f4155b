//! Sparse attention whose positions an indexer chooses.

use super::golden::{Golden, adapter_training, cpu, full_parameter_training, logprobs, lora_gradients, relative, root};
use crate::backend::check::access::{HostAccess, Numbers, rotary_table};
use crate::backend::cpu::{Cpu, Isa};
use crate::backend::reference::Reference;
use crate::backend::{
    AttentionCall, AttentionShape, Backend, BlockId, Chosen, Dtype, IndexCall, IndexKeys, IndexRotation, IndexerOps,
    KV_BLOCK, Span,
};
use crate::collective::Ranks;
use crate::load::load;
use crate::model::Saved;
use crate::parallel::Parallel;

const FAMILIES: [&str; 2] = ["glm_moe_dsa", "deepseek_v32"];

fn golden<B: Backend>(family: &str, backend: B) -> Golden<B> {
    let g = Golden::open(&format!("indexed/{family}"), backend);
    let count = g.model.config.indexer.as_ref().unwrap().count;
    // Of 150 tokens.
    assert_eq!((count, g.model.config.max_position_embeddings), (16, 512));
    g
}

fn check<B: Backend>(g: &Golden<B>) {
    logprobs(g);
    lora_gradients(g, &["cross_entropy"]);
    full_parameter_training(g);
}

#[test]
fn contexts_beyond_what_is_chosen_agree_with_pytorch() {
    for family in FAMILIES {
        for isa in Isa::available() {
            check(&golden(family, cpu(isa)));
        }
        check(&golden(family, Reference));
    }
    adapter_training(&golden("glm_moe_dsa", cpu(Isa::detect())));
}

/// Bits of an adapter's outputs and gradient.
pub(super) fn bits<B: Backend>(g: &Golden<B>) -> Vec<u32> {
    let lora = g.adapter_params("lora_init.safetensors");
    let (outputs, gradient) = g.run(&g.weights, Some(&lora), "cross_entropy", true);
    let outputs = outputs.into_iter().flat_map(|output| output.logprobs);
    outputs.chain(gradient.unwrap().into_iter().flatten()).map(f32::to_bits).collect()
}

#[test]
fn within_the_number_of_chosen_positions_attention_has_the_bits_of_dense_attention() {
    for family in FAMILIES {
        for (isa, dtype) in Isa::available().into_iter().flat_map(|isa| [(isa, Dtype::F32), (isa, Dtype::Bf16)]) {
            let backend = || Cpu::with_isa(2, isa).with_dtype(dtype);
            let dir = root().join("indexed").join(family);
            let mut source = load(&dir).unwrap();
            source.config = source.config.without_indexer();
            let of_dense = Golden::of(source, dir, backend(), Ranks::default(), Parallel::default());
            assert_eq!(of_dense.model.config.max_position_embeddings, 16);
            let both = [golden(family, backend()), of_dense].map(|mut g| {
                for datum in g.json["data"].as_array_mut().unwrap() {
                    let lists = datum.as_object_mut().unwrap().values_mut();
                    lists.for_each(|values| values.as_array_mut().unwrap().truncate(16));
                }
                bits(&g)
            });
            assert!(both[0] == both[1], "{family}, {}", isa.name());
        }
    }
}

#[test]
fn blocks_that_are_recomputed_attend_to_the_same_positions() {
    for dtype in [Dtype::F32, Dtype::Bf16] {
        let of = |saved| {
            let mut g = golden("glm_moe_dsa", Cpu::with_isa(2, Isa::detect()).with_dtype(dtype));
            g.saved = saved;
            bits(&g)
        };
        let expected = of(None);
        for saved in Saved::choices(3) {
            assert!(of(Some(saved)) == expected, "{saved:?}");
        }
    }
}

/// Spans of whole sequences of `lens` rows, over blocks from a new pool.
fn spans<B: Backend>(b: &B, pool: &mut B::KvPool, lens: &[usize]) -> Vec<Span> {
    let mut first = 0;
    let mut span = |len: &usize| {
        first += len;
        let blocks: Vec<BlockId> = (0..len.div_ceil(KV_BLOCK)).map(|_| b.kv_take(pool)).collect();
        Span { rows: first - len..first, start: 0, blocks, held: 0, state: None }
    };
    lens.iter().map(&mut span).collect()
}

const LENS: [usize; 3] = [150, 1, 70];
const ROWS: usize = 221;
const COUNT: usize = 20;
const HEADS: usize = 3;
const INDEX: IndexKeys = IndexKeys { layers: 2, width: 24 };

/// An indexer's choice for three sequences, and attention to it with its gradient. `single`: each row in a call of its own.
fn attend<B: HostAccess>(b: &B, interleaved: bool, single: bool) -> (Chosen, Vec<(&'static str, Vec<f32>)>) {
    let shape = AttentionShape { layers: 2, heads: 4, kv_heads: 4, head_dim: 40, scale: 0.2, index: INDEX };
    let mut n = Numbers(7);
    let mut take = |rows: usize, width: usize| b.rows(&n.take(rows * width), width);
    let (queries, keys) = (take(ROWS, HEADS * INDEX.width), take(ROWS, INDEX.width));
    let (weights, qkv, d_out) = (take(ROWS, HEADS), take(ROWS, shape.qkv_width()), take(ROWS, shape.q_width()));
    let mut pool = b.kv_pool(&shape);
    let spans = spans(b, &mut pool, &LENS);
    let positions: Vec<u32> = LENS.iter().flat_map(|len| 0..*len as u32).collect();
    let rope = b.rope(8, rotary_table(200, 1e3, 8));
    let rotation = IndexRotation { width: INDEX.width, interleaved, rope: &rope, positions: &positions };
    let [queries, keys] = [queries, keys].map(|x| B::Family::rotate_index(b, &rotation, &x));
    let layer = 1;
    b.kv_write(&mut pool, &shape, layer, &spans, &qkv);
    B::Family::write_index(b, &mut pool, layer, &spans, &keys);
    let call = IndexCall { layer, heads: HEADS, count: COUNT, spans: &spans };
    let chosen = B::Family::choose(b, call, &pool, &queries, &weights);
    let of = AttentionCall { shape: &shape, layer, window: None, spans: &spans, chosen: Some(&chosen) };
    if single {
        let mut out = Vec::new();
        for span in &spans {
            for (position, row) in span.rows.clone().enumerate() {
                let own = [Span { rows: 0..1, start: position, held: position, ..span.clone() }];
                let [queries, weights, qkv] = [&queries, &weights, &qkv].map(|x| b.gather(x, &[row]));
                let own_choice = B::Family::choose(b, IndexCall { spans: &own, ..call }, &pool, &queries, &weights);
                for block in 0..position / KV_BLOCK + 1 {
                    assert_eq!(own_choice.of(0, block), chosen.of(row, block), "row {row}");
                }
                let own_call = AttentionCall { spans: &own, chosen: Some(&own_choice), ..of };
                out.extend(b.values(&b.attention(own_call, &pool, &qkv)[0]));
            }
        }
        return (chosen.clone(), vec![("out", out)]);
    }
    let [out, lse] = b.attention(of, &pool, &qkv);
    let d_qkv = b.attention_backward(of, &pool, &qkv, [&out, &lse], &d_out);
    (chosen.clone(), vec![("out", b.values(&out)), ("lse", b.values(&lse)), ("d qkv", b.values(&d_qkv))])
}

#[test]
fn kernels_attend_to_the_chosen_positions() {
    for interleaved in [false, true] {
        let (expected_choice, expected) = attend(&Reference, interleaved, false);
        let mut ones = 0;
        for (row, position) in LENS.iter().flat_map(|len| 0..*len).enumerate() {
            let words = 0..position / KV_BLOCK + 1;
            let count: u32 = words.map(|block| expected_choice.of(row, block).count_ones()).sum();
            assert!(position < COUNT || count as usize == COUNT, "{row}: {count}");
            ones += count;
        }
        assert!(ones > 0);
        for (isa, dtype) in Isa::available().into_iter().flat_map(|isa| [(isa, Dtype::F32), (isa, Dtype::Bf16)]) {
            let backend = Cpu::with_isa(2, isa).with_dtype(dtype);
            let (choice, found) = attend(&backend, interleaved, false);
            assert!(choice == expected_choice, "{}", isa.name());
            let tolerance = if dtype == Dtype::F32 { 1e-5 } else { 2e-2 };
            for ((what, found), (_, expected)) in found.iter().zip(&expected) {
                let error = relative(&vec![found.clone()], &vec![expected.clone()]);
                assert!(error < tolerance, "{what}, {} {dtype:?}: {error}", isa.name());
            }
            // A row has these bits whatever else is in a pass.
            let (_, single) = attend(&backend, interleaved, true);
            assert!(single[0].1 == found[0].1, "{} {dtype:?}", isa.name());
        }
    }
}

/// The gradient of attention with the choice fixed, by differences.
#[test]
fn the_gradient_is_that_of_the_chosen_positions() {
    let shape = AttentionShape { layers: 1, heads: 1, kv_heads: 1, head_dim: 4, scale: 0.5, index: INDEX };
    let (b, rows, count) = (Reference, 40, 5);
    let mut n = Numbers(3);
    let mut take = |width: usize| n.take(rows * width);
    let [qkv, d_out] = [take(shape.qkv_width()), take(shape.q_width())];
    let [queries, keys, weights] = [INDEX.width, INDEX.width, 1].map(|width| b.rows(&take(width), width));
    let mut pool = b.kv_pool(&AttentionShape { layers: 1, ..shape });
    let spans = spans(&b, &mut pool, &[rows]);
    Reference::write_index(&b, &mut pool, 0, &spans, &keys);
    let call = IndexCall { layer: 0, heads: 1, count, spans: &spans };
    let chosen = Reference::choose(&b, call, &pool, &queries, &weights);
    let call = AttentionCall { shape: &shape, layer: 0, window: None, spans: &spans, chosen: Some(&chosen) };
    let mut loss = |qkv: &[f32]| {
        let qkv = b.rows(qkv, shape.qkv_width());
        b.kv_write(&mut pool, &shape, 0, &spans, &qkv);
        let [out, lse] = b.attention(call, &pool, &qkv);
        let sum = b.values(&out).iter().zip(&d_out).map(|(a, b)| f64::from(a * b)).sum::<f64>();
        let d_out = b.rows(&d_out, shape.q_width());
        (sum, b.values(&b.attention_backward(call, &pool, &qkv, [&out, &lse], &d_out)))
    };
    let (_, gradient) = loss(&qkv);
    for at in (0..qkv.len()).step_by(7) {
        let mut by = |step: f32| {
            let mut moved = qkv.clone();
            moved[at] += step;
            loss(&moved).0
        };
        let difference = (by(0.01) - by(-0.01)) / 0.02;
        assert!((difference - f64::from(gradient[at])).abs() < 2e-3, "{at}: {difference} {}", gradient[at]);
    }
}

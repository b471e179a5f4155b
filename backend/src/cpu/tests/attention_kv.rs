//! Keys and values of sequences: how tokens are cut into passes, and which sequences share blocks, does not change the bits
//! of outputs.

use super::support::{Attention, LAYER, attention_cpus, attention_shape, bits, values};
use crate::cpu::kv::Storage;
use crate::kv::KvSequence;
use crate::{Backend, KV_BLOCK};

/// Bits of the outputs and log-sum-exps of consecutive rows.
#[derive(Debug, Default, PartialEq)]
struct Rows {
    out: Vec<u32>,
    lse: Vec<u32>,
}

/// Feeds rows of `qkv` to a sequence in passes of a given length.
fn feed(
    attention: &mut Attention<'_>,
    width: usize,
    kv: &mut KvSequence,
    qkv: &[f32],
    chunks: impl IntoIterator<Item = usize>,
) -> Rows {
    let (mut rows, mut rest) = (Rows::default(), qkv);
    for chunk in chunks {
        let (now, later) = rest.split_at(chunk * width);
        let (out, lse) = attention.attend(now, &[chunk], std::slice::from_mut(kv));
        rows.out.extend(bits(&out));
        rows.lse.extend(bits(&lse));
        rest = later;
    }
    assert!(rest.is_empty());
    rows
}

#[test]
fn chunks_and_single_tokens_give_the_bits_of_the_whole_pass() {
    // More than the 128 keys between two updates of a running maximum.
    let n = 150;
    // The last has more heads to a key than a tile has rows.
    for shape in [attention_shape(2, 1, 16), attention_shape(2, 3, 64), attention_shape(1, 50, 16)] {
        let qkv: Vec<f32> = values(n * shape.qkv_width(), 1).iter().map(|x| 3.0 * x).collect();
        for cpu in attention_cpus() {
            for window in [None, Some(7), Some(33)] {
                let (mut attention, width) = (Attention::new(&cpu, &shape, window), shape.qkv_width());
                let whole = feed(&mut attention, width, &mut KvSequence::default(), &qkv, [n]);
                for chunks in [vec![1; n], vec![31, 1, 33, 2, 1, 32, 50], vec![49, 101], vec![64, 86]] {
                    assert_eq!(feed(&mut attention, width, &mut KvSequence::default(), &qkv, chunks), whole);
                }
            }
        }
    }
}

#[test]
fn a_block_takes_the_bytes_that_plans_count() {
    for cpu in attention_cpus() {
        for head_dim in [16, 64, 72] {
            let shape = attention_shape(2, 3, head_dim);
            let mut pool = cpu.kv_pool(&shape);
            let block = cpu.kv_take(&mut pool);
            let (head, width) = match pool.storage() {
                Storage::Floats(pool) => {
                    let (keys, values) = pool.tile(LAYER, 1, block);
                    (size_of_val(keys) + size_of_val(values), 4 * head_dim)
                }
                #[cfg(target_arch = "x86_64")]
                Storage::Tiles(pool) => {
                    let (keys, values) = pool.tile(LAYER, 1, block);
                    (size_of_val(keys) + size_of_val(values), 2 * head_dim.next_multiple_of(32))
                }
            };
            assert_eq!(head, 2 * width * KV_BLOCK);
            assert_eq!(cpu.kv_block_bytes(&shape), shape.layers * shape.kv_heads * head);
        }
    }
}

#[test]
fn sequences_in_one_pass_may_be_at_different_positions() {
    let shape = attention_shape(2, 3, 16);
    let width = shape.qkv_width();
    let starts = [0, 40, 63, 5];
    let lens = [3, 1, 2, 1];
    for cpu in attention_cpus() {
        for window in [None, Some(7)] {
            let mut attention = Attention::new(&cpu, &shape, window);
            let (mut kvs, mut qkv, mut alone) = (Vec::new(), Vec::new(), Rows::default());
            for (i, (start, len)) in starts.into_iter().zip(lens).enumerate() {
                let tokens = values((start + len) * width, i as u64);
                let (past, now) = tokens.split_at(start * width);
                let mut kv = KvSequence::default();
                feed(&mut attention, width, &mut kv, past, [start]);
                let rows = feed(&mut attention, width, &mut kv.clone(), now, [len]);
                alone.out.extend(rows.out);
                alone.lse.extend(rows.lse);
                kvs.push(kv);
                qkv.extend_from_slice(now);
            }
            let (out, lse) = attention.attend(&qkv, &lens, &mut kvs);
            assert_eq!(Rows { out: bits(&out), lse: bits(&lse) }, alone);
        }
    }
}

#[test]
fn forks_do_not_disturb_each_other() {
    let shape = attention_shape(2, 3, 16);
    let width = shape.qkv_width();
    // The shared part ends within a block, at a block's end and just after one.
    for shared in [40, 32, 33] {
        let prefix = values(shared * width, 1);
        let tails: Vec<Vec<f32>> = (2..5).map(|seed| values(30 * width, seed)).collect();
        for cpu in attention_cpus() {
            let mut attention = Attention::new(&cpu, &shape, None);
            let fresh: Vec<Rows> = tails
                .iter()
                .map(|tail| {
                    let mut kv = KvSequence::default();
                    feed(&mut attention, width, &mut kv, &prefix, [shared]);
                    feed(&mut attention, width, &mut kv, tail, [30])
                })
                .collect();

            let mut original = KvSequence::default();
            feed(&mut attention, width, &mut original, &prefix, [shared]);
            let mut forks = vec![original.clone(); tails.len()];
            let mut rows: Vec<Rows> = tails.iter().map(|_| Rows::default()).collect();
            for token in 0..30 {
                // All forks write in one pass, each from its own thread.
                let qkv: Vec<f32> = tails.iter().flat_map(|t| t[token * width..(token + 1) * width].to_vec()).collect();
                let (out, lse) = attention.attend(&qkv, &[1; 3], &mut forks);
                for (i, rows) in rows.iter_mut().enumerate() {
                    rows.out.extend(bits(&out[i * shape.q_width()..(i + 1) * shape.q_width()]));
                    rows.lse.extend(bits(&lse[i * shape.heads..(i + 1) * shape.heads]));
                }
            }
            assert_eq!(rows, fresh);
            assert_eq!(original.len(), shared);
            assert_eq!(feed(&mut attention, width, &mut original, &tails[0], [30]), fresh[0]);
        }
    }
}

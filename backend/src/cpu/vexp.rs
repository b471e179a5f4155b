//! Exponential and reductions that vectorise, with the same bits in every lane and remainder.

/// Defines `fn name(isa, args)`, whose body is compiled three times (function multiversioning): for AVX-512, for AVX2 with FMA,
/// and for the target's baseline; the best one that `isa` has runs. The body is plain Rust that the compiler vectorises.
macro_rules! multiversion {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$doc])*
        $vis fn $name(isa: $crate::cpu::isa::Isa, $($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn body($($arg: $ty),*) $(-> $ret)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
            fn avx512($($arg: $ty),*) $(-> $ret)? {
                body($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($arg: $ty),*) $(-> $ret)? {
                body($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            if isa.has_avx512() {
                // SAFETY: an `Isa` of a `Cpu` is one that the processor has.
                return unsafe { avx512($($arg),*) };
            }
            #[cfg(target_arch = "x86_64")]
            if isa.has_avx2() {
                // SAFETY: an `Isa` of a `Cpu` is one that the processor has.
                return unsafe { avx2($($arg),*) };
            }
            let _ = isa;
            body($($arg),*)
        }
    };
}
pub(crate) use multiversion;

/// Lanes of a reduction: fixed, so that sums do not depend on the instruction set's width.
pub(crate) const LANES: usize = 8;

/// e^x to about 1 ulp; 0 below -87.3 (and for -inf), +inf above 88.7. Cody–Waite reduction and a
/// polynomial as in Cephes `expf`.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    const MAGIC: f32 = 12_582_912.0; // 1.5 · 2^23: adding it rounds to an integer
    let shifted = x.mul_add(std::f32::consts::LOG2_E, MAGIC);
    let n = shifted - MAGIC;
    let r = n.mul_add(-0.693_359_4, x);
    let r = n.mul_add(2.121_944_4e-4, r);
    let mut p = 1.987_569_1e-4f32;
    p = p.mul_add(r, 1.398_2e-3);
    p = p.mul_add(r, 8.333_452e-3);
    p = p.mul_add(r, 4.166_579_6e-2);
    p = p.mul_add(r, 1.666_666_5e-1);
    p = p.mul_add(r, 5e-1);
    let y = p.mul_add(r * r, r) + 1.0;
    // Times 2^n, by the exponent: the low bits of `shifted` are n. A conversion to an integer would saturate, which does not
    // vectorise. The product is normal between the bounds; beyond them, and for NaN, it is replaced.
    let y = f32::from_bits(y.to_bits().wrapping_add(shifted.to_bits() << 23));
    let y = if x < -87.3 { 0.0 } else { y };
    if x <= 88.72 { y } else { x + f32::INFINITY }
}

/// 1 / (1 + e^-x).
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// Largest element; -inf for none.
#[inline(always)]
pub(crate) fn max(x: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let mut chunks = x.chunks_exact(LANES);
    for chunk in &mut chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = if *x > *lane { *x } else { *lane };
        }
    }
    for (lane, x) in lanes.iter_mut().zip(chunks.remainder()) {
        *lane = if *x > *lane { *x } else { *lane };
    }
    lanes.iter().fold(f32::NEG_INFINITY, |m, x| if *x > m { *x } else { m })
}

/// Elements that [`sum_by`] maps together: several vectors, so that only the additions wait for one another.
const MAPPED: usize = 32;

/// Sum over `f` of the elements, in [`LANES`] partial sums.
#[inline(always)]
pub(crate) fn sum_by(x: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0f32; LANES];
    let (chunks, rest) = x.as_chunks::<MAPPED>();
    for chunk in chunks {
        let mut terms = [0f32; MAPPED];
        for (term, x) in terms.iter_mut().zip(chunk) {
            *term = f(*x);
        }
        for terms in terms.as_chunks::<LANES>().0 {
            for (lane, term) in lanes.iter_mut().zip(terms) {
                *lane += term;
            }
        }
    }
    for x in rest.chunks(LANES) {
        for (lane, x) in lanes.iter_mut().zip(x) {
            *lane += f(*x);
        }
    }
    add_lanes(&lanes)
}

/// Sum over `f` of the elements of two slices of one length, in [`LANES`] partial sums.
#[inline(always)]
pub(crate) fn sum_of_pairs(x: &[f32], y: &[f32], f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [0f32; LANES];
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<MAPPED>(), y.as_chunks::<MAPPED>());
    for (x, y) in x.iter().zip(y) {
        let mut terms = [0f32; MAPPED];
        for ((term, x), y) in terms.iter_mut().zip(x).zip(y) {
            *term = f(*x, *y);
        }
        for terms in terms.as_chunks::<LANES>().0 {
            for (lane, term) in lanes.iter_mut().zip(terms) {
                *lane += term;
            }
        }
    }
    for (x, y) in x_rest.chunks(LANES).zip(y_rest.chunks(LANES)) {
        for ((lane, x), y) in lanes.iter_mut().zip(x).zip(y) {
            *lane += f(*x, *y);
        }
    }
    add_lanes(&lanes)
}

/// Dot product, in [`LANES`] partial sums.
#[inline(always)]
pub(crate) fn dot(x: &[f32], y: &[f32]) -> f32 {
    let mut lanes = [0f32; LANES];
    let (mut xs, mut ys) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    for (x, y) in (&mut xs).zip(&mut ys) {
        for ((lane, x), y) in lanes.iter_mut().zip(x).zip(y) {
            *lane = x.mul_add(*y, *lane);
        }
    }
    for ((lane, x), y) in lanes.iter_mut().zip(xs.remainder()).zip(ys.remainder()) {
        *lane = x.mul_add(*y, *lane);
    }
    add_lanes(&lanes)
}

#[inline(always)]
fn add_lanes(l: &[f32; LANES]) -> f32 {
    ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Isa;

    multiversion! {
        fn exp_all(x: &mut [f32]) {
            for x in x {
                *x = exp(*x);
            }
        }
    }

    #[test]
    fn exp_is_accurate_and_the_same_on_every_isa() {
        let inputs: Vec<f32> = (-9_000..9_000).map(|i| i as f32 * 0.01).collect();
        let mut reference: Option<Vec<f32>> = None;
        for isa in Isa::available() {
            let mut y = inputs.clone();
            exp_all(isa, &mut y);
            for (x, y) in inputs.iter().zip(&y) {
                let exact = f64::from(*x).exp();
                if *x > -87.0 && *x < 88.7 {
                    assert!(((f64::from(*y) - exact) / exact).abs() < 3e-7, "exp({x}) = {y}, not {exact}");
                }
            }
            assert_eq!(*reference.get_or_insert_with(|| y.clone()), y);
        }
    }

    multiversion! {
        fn sums(x: &[f32]) -> (f32, f32) {
            (sum_by(x, |x| x), sum_by(x, exp))
        }
    }

    /// Lane `i` sums the elements `i`, `i + LANES`, … in order, whatever the width of the vectors.
    #[test]
    fn sums_have_their_order_on_every_isa() {
        for len in [0, 1, 7, 8, 31, 32, 33, 64, 77, 576] {
            let x: Vec<f32> = (0..len).map(|i| (i as f32 * 0.7).sin()).collect();
            let mut lanes = [[0f32; LANES]; 2];
            for (i, x) in x.iter().enumerate() {
                lanes[0][i % LANES] += x;
                lanes[1][i % LANES] += exp(*x);
            }
            for isa in Isa::available() {
                assert_eq!(sums(isa, &x), (add_lanes(&lanes[0]), add_lanes(&lanes[1])), "{isa:?} {len}");
            }
        }
    }

    #[test]
    fn exp_at_the_ends() {
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-100.0), 0.0);
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp(89.0), f32::INFINITY);
        assert_eq!(exp(f32::MAX), f32::INFINITY);
        assert_eq!(exp(f32::MIN), 0.0);
        // The largest and the smallest result that is neither infinite nor zero: both normal.
        for x in [88.72f32, -87.3] {
            let exact = f64::from(x).exp();
            assert!(exp(x).is_normal() && ((f64::from(exp(x)) - exact) / exact).abs() < 3e-7, "exp({x}) = {}", exp(x));
        }
        assert!(exp(f32::NAN).is_nan());
    }
}

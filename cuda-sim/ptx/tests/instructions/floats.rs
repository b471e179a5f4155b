//! f32 and f64 arithmetic; the errors of approximations are those of NVIDIA's documentation.

use crate::check_f32;

#[test]
fn arithmetic_is_rounded_to_nearest() {
    check_f32("add.f32 %r0, %x, %y", 0, |x, y, _| x + y);
    check_f32("sub.rn.f32 %r0, %x, %y", 0, |x, y, _| x - y);
    check_f32("mul.f32 %r0, %x, %y", 0, |x, y, _| x * y);
    check_f32("fma.rn.f32 %r0, %x, %y, %z", 0, |x, y, z| x.mul_add(y, z));
    check_f32("div.rn.f32 %r0, %x, %y", 0, |x, y, _| x / y);
    check_f32("rcp.rn.f32 %r0, %x", 0, |x, _, _| 1.0 / x);
    check_f32("sqrt.rn.f32 %r0, %x", 0, |x, _, _| x.sqrt());
    check_f32("neg.f32 %r0, %x", 0, |x, _, _| -x);
    check_f32("abs.f32 %r0, %x", 0, |x, _, _| x.abs());
    check_f32("add.sat.f32 %r0, %x, %y", 0, |x, y, _| if x + y > 0.0 { (x + y).min(1.0) } else { 0.0 });
    check_f32("copysign.f32 %r0, %x, %y", 0, |x, y, _| y.copysign(x));
}

/// The neighbours of a result that is not exact, by comparison with f64, where sums of these magnitudes are exact.
#[test]
fn directed_rounding_brackets_the_result() {
    let inside = |x: f32, y: f32| x.abs() > 1e-3 && y.abs() > 1e-3 && x.abs() < 1e4 && y.abs() < 1e4;
    let down = |exact: f64| if f64::from(exact as f32) > exact { (exact as f32).next_down() } else { exact as f32 };
    let up = |exact: f64| if f64::from(exact as f32) < exact { (exact as f32).next_up() } else { exact as f32 };
    // Outside the range where f64 is exact, both sides take the nearest.
    let lines = |name: &str| format!("{name}.f32 %r0, %x, %y");
    let triples: Vec<[u64; 3]> = crate::triples(&[]).iter().map(|t| t.map(|bits| random_float(bits).into())).collect();
    for (name, expected) in [
        ("add.rm", (|x, y, down, _| down(x + y)) as fn(f64, f64, &dyn Fn(f64) -> f32, &dyn Fn(f64) -> f32) -> f32),
        ("add.rp", |x, y, _, up| up(x + y)),
        ("mul.rm", |x, y, down, _| down(x * y)),
        ("mul.rp", |x, y, _, up| up(x * y)),
        ("mul.rz", |x, y, down, up| if x * y > 0.0 { down(x * y) } else { up(x * y) }),
    ] {
        let out = crate::run(&format!("{}; cvt.u64.u32 %o, %r0;", lines(name)), &triples);
        for ([x, y, _], got) in triples.iter().zip(out) {
            let (x, y) = (f32::from_bits(*x as u32), f32::from_bits(*y as u32));
            assert!(inside(x, y));
            let expected = expected(x.into(), y.into(), &down, &up);
            assert_eq!(f32::from_bits(got as u32), expected, "{name} of {x:e} and {y:e}");
        }
    }
}

/// A float between 2^-9 and 2^9 with either sign.
fn random_float(bits: u64) -> u32 {
    let exponent = 119 + (bits >> 32) as u32 % 18;
    (bits as u32 & 0x807f_ffff) | exponent << 23
}

#[test]
fn extremes_prefer_numbers() {
    let number = |x: f32, y: f32, pick: fn(f32, f32) -> bool| {
        if x.is_nan() {
            y
        } else if y.is_nan() || pick(x, y) {
            x
        } else {
            y
        }
    };
    let below = |x: f32, y: f32| x < y || x == y && x.is_sign_negative();
    let above = |x: f32, y: f32| x > y || x == y && x.is_sign_positive();
    check_f32("min.f32 %r0, %x, %y", 0, |x, y, _| number(x, y, below));
    check_f32("max.f32 %r0, %x, %y", 0, |x, y, _| number(x, y, above));
    check_f32(
        "max.NaN.f32 %r0, %x, %y",
        0,
        |x, y, _| {
            if x.is_nan() || y.is_nan() { f32::NAN } else { number(x, y, above) }
        },
    );
}

#[test]
fn comparisons_of_nan() {
    let ordered = |name: &str| format!("setp.{name}.f32 %p0, %x, %y; selp.f32 %r0, 0f3F800000, 0f00000000, %p0");
    let bit = |holds: bool| if holds { 1.0 } else { 0.0 };
    check_f32(&ordered("lt"), 0, |x, y, _| bit(x < y));
    check_f32(&ordered("ne"), 0, |x, y, _| bit(x != y && !x.is_nan() && !y.is_nan()));
    check_f32(&ordered("neu"), 0, |x, y, _| bit(x != y));
    check_f32(&ordered("geu"), 0, |x, y, _| bit(x >= y || x.is_nan() || y.is_nan()));
    check_f32(&ordered("nan"), 0, |x, y, _| bit(x.is_nan() || y.is_nan()));
    check_f32(&ordered("num"), 0, |x, y, _| bit(!x.is_nan() && !y.is_nan()));
    check_f32("testp.finite.f32 %p0, %x; selp.f32 %r0, 0f3F800000, 0f00000000, %p0", 0, |x, _, _| bit(x.is_finite()));
}

#[test]
fn approximations_keep_their_error() {
    let of = |f: fn(f64) -> f64| move |x: f32, _: f32, _: f32| f(x.into()) as f32;
    check_f32("ex2.approx.f32 %r0, %x", 2, of(f64::exp2));
    check_f32("lg2.approx.f32 %r0, %x", 2, of(f64::log2));
    check_f32("rcp.approx.f32 %r0, %x", 1, of(|x| 1.0 / x));
    check_f32("rsqrt.approx.f32 %r0, %x", 2, of(|x| 1.0 / x.sqrt()));
    check_f32("sqrt.approx.f32 %r0, %x", 1, of(f64::sqrt));
    check_f32("tanh.approx.f32 %r0, %x", 2, of(f64::tanh));
    check_f32("div.full.f32 %r0, %x, %y", 2, |x, y, _| x / y);
    check_f32("sin.approx.f32 %r0, %x", 2, of(f64::sin));
    check_f32("cos.approx.f32 %r0, %x", 2, of(f64::cos));
}

#[test]
fn subnormal_numbers_are_flushed_where_asked() {
    let flush = |x: f32| if x.is_subnormal() { 0.0f32.copysign(x) } else { x };
    check_f32("add.ftz.f32 %r0, %x, %y", 0, |x, y, _| flush(flush(x) + flush(y)));
    check_f32("mul.ftz.f32 %r0, %x, %y", 0, |x, y, _| flush(flush(x) * flush(y)));
    check_f32("ex2.approx.ftz.f32 %r0, %x", 2, |x, _, _| flush((f64::from(flush(x)).exp2()) as f32));
}

#[test]
fn doubles() {
    let float =
        |instruction: &str| format!("cvt.f64.f32 %d0, %x; cvt.f64.f32 %d1, %y; {instruction}; cvt.rn.f32.f64 %r0, %d2");
    let wide = |f: fn(f64, f64) -> f64| move |x: f32, y: f32, _: f32| f(x.into(), y.into()) as f32;
    check_f32(&float("add.f64 %d2, %d0, %d1"), 0, wide(|x, y| x + y));
    check_f32(&float("mul.rn.f64 %d2, %d0, %d1"), 0, wide(|x, y| x * y));
    check_f32(&float("div.rn.f64 %d2, %d0, %d1"), 0, wide(|x, y| x / y));
    check_f32(&float("fma.rn.f64 %d2, %d0, %d1, %d1"), 0, wide(|x, y| x.mul_add(y, y)));
    check_f32(&float("sqrt.rn.f64 %d2, %d0"), 0, wide(|x, _| x.sqrt()));
}

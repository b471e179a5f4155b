//! Rounding of f32 arithmetic in the directions that PTX names, and flushing of subnormal numbers.

/// A number whose sign bit stays and whose magnitude becomes 0 where it is subnormal: `.ftz`.
pub(crate) fn flush(x: f32) -> f32 {
    if x.is_subnormal() { 0.0f32.copysign(x) } else { x }
}

/// Clamps to 0 and 1; NaN becomes 0: `.sat`.
pub(crate) fn saturate(x: f32) -> f32 {
    if x > 1.0 {
        1.0
    } else if x > 0.0 {
        x
    } else {
        0.0
    }
}

/// Direction in which a result between two numbers is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Zero,
    Down,
    Up,
}

/// `a * b + c`, rounded once, towards zero.
pub(crate) fn fma_zero(a: f32, b: f32, c: f32) -> f32 {
    fma(a, b, c, Direction::Zero)
}

/// `a * b + c`, rounded once, downwards.
pub(crate) fn fma_down(a: f32, b: f32, c: f32) -> f32 {
    fma(a, b, c, Direction::Down)
}

/// `a * b + c`, rounded once, upwards.
pub(crate) fn fma_up(a: f32, b: f32, c: f32) -> f32 {
    fma(a, b, c, Direction::Up)
}

fn fma(a: f32, b: f32, c: f32, direction: Direction) -> f32 {
    let nearest = a.mul_add(b, c);
    if !nearest.is_finite() {
        // An overflow is infinite only in its own direction; infinite values stay infinite.
        let exact = f64::from(a) * f64::from(b) + f64::from(c);
        let overflowed = exact.is_finite();
        let inward = match direction {
            Direction::Zero => true,
            Direction::Down => nearest > 0.0,
            Direction::Up => nearest < 0.0,
        };
        return if overflowed && inward { f32::MAX.copysign(nearest) } else { nearest };
    }
    // The product is exact in f64; the sum's error is what two-sum says.
    let (product, addend) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + addend;
    let back = sum - product;
    let error = (product - (sum - back)) + (addend - back);
    let rest = (sum - f64::from(nearest)) + error;
    let away = match direction {
        Direction::Zero if nearest > 0.0 => rest < 0.0,
        Direction::Zero => rest > 0.0 && nearest < 0.0,
        Direction::Down => rest < 0.0,
        Direction::Up => rest > 0.0,
    };
    match (away, direction) {
        (false, _) => nearest,
        (true, Direction::Down) => nearest.next_down(),
        (true, Direction::Up) => nearest.next_up(),
        (true, Direction::Zero) if nearest > 0.0 => nearest.next_down(),
        (true, Direction::Zero) => nearest.next_up(),
    }
}

/// Zero for what is negative, -0 too; NaN stays. (`f64::max` leaves the sign of a zero open.)
pub(crate) fn rectified(x: f64) -> f64 {
    if x <= 0.0 { 0.0 } else { x }
}

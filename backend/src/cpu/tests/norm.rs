use candle_core::{D, Tensor, Var};

use super::support::{assert_close, constant, cpus, elements, gradients, values, var};
use crate::cpu::norm::{add_rms_norm, rms_norm, rms_norm_backward, rms_norm_heads, rms_norm_heads_backward};

const EPS: f32 = 1e-5;

fn reference(x: &Tensor, w: &Var) -> Tensor {
    let mean = x.sqr().unwrap().mean_keepdim(D::Minus1).unwrap();
    let rms = (mean + f64::from(EPS)).unwrap().sqrt().unwrap();
    x.broadcast_div(&rms).unwrap().broadcast_mul(w).unwrap()
}

fn plus(gradient: &[f64], before: &[f32]) -> Vec<f64> {
    gradient.iter().zip(before).map(|(g, b)| g + f64::from(*b)).collect()
}

#[test]
fn rms_norm_and_its_gradients() {
    for (rows, width) in [(1, 1), (5, 7), (3, 16), (9, 65), (2, 130)] {
        let (mut x, w, dy) = (values(rows * width, 1), values(width, 2), values(rows * width, 3));
        x[..width].fill(0.0);
        let (vx, vw) = (var(&x, &[rows, width]), var(&w, &[width]));
        let y = reference(&vx, &vw);
        let grads = gradients(&y, &constant(&dy, &[rows, width]), &[&vx, &vw]);
        for cpu in cpus() {
            let mut out = vec![0.0; rows * width];
            rms_norm(&cpu, &x, &w, EPS, &mut out);
            assert_close("y", &out, &elements(&y), 1e-6);

            let before = values(rows * width, 6);
            let mut sum = before.clone();
            add_rms_norm(&cpu, &x, &w, EPS, &mut sum);
            assert_close("sum", &sum, &plus(&elements(&y), &before), 1e-6);

            // Both gradients are added to what is there.
            let (dx_before, dw_before) = (values(rows * width, 4), values(width, 5));
            let (mut dx, mut dw) = (dx_before.clone(), dw_before.clone());
            rms_norm_backward(&cpu, &x, &w, EPS, &dy, &mut dx, Some(&mut dw));
            assert_close("dx", &dx, &plus(&grads[0], &dx_before), 2e-6);
            assert_close("dw", &dw, &plus(&grads[1], &dw_before), 2e-6);

            let mut frozen = dx_before.clone();
            rms_norm_backward(&cpu, &x, &w, EPS, &dy, &mut frozen, None);
            assert_eq!(frozen, dx);
        }
    }
}

#[test]
fn rms_norm_of_heads_and_its_gradients() {
    let (rows, heads) = (5, 3);
    for width in [4, 16, 72] {
        let (offset, stride) = (width, (heads + 2) * width);
        let (x, w, dy) = (values(rows * stride, 1), values(width, 2), values(rows * stride, 3));
        let (vx, vw) = (var(&x, &[rows, stride]), var(&w, &[width]));
        let part = |t: &Tensor| {
            t.narrow(1, offset, heads * width).unwrap().reshape((rows, heads, width)).unwrap().contiguous().unwrap()
        };
        let y = reference(&part(&vx), &vw);
        let grads = gradients(&y, &part(&constant(&dy, &[rows, stride])), &[&vx, &vw]);
        let around = |y: &Tensor, rest: &[f32]| {
            let rest = constant(rest, &[rows, stride]);
            let y = y.reshape((rows, heads * width)).unwrap();
            let after = rest.narrow(1, offset + heads * width, width).unwrap();
            elements(&Tensor::cat(&[&rest.narrow(1, 0, offset).unwrap(), &y, &after], 1).unwrap())
        };
        for cpu in cpus() {
            let mut out = x.clone();
            rms_norm_heads(&cpu, &mut out, stride, offset, heads, &w, EPS);
            assert_close("y", &out, &around(&y, &x), 1e-6);

            let (mut dx, mut frozen, dw_before) = (dy.clone(), dy.clone(), values(width, 5));
            let mut dw = dw_before.clone();
            rms_norm_heads_backward(&cpu, &x, stride, offset, heads, &w, EPS, &mut dx, Some(&mut dw));
            let by_x = Tensor::from_slice(&grads[0], (rows, stride), vx.device()).unwrap();
            assert_close("dx", &dx, &around(&part(&by_x), &dy), 2e-6);
            assert_close("dw", &dw, &plus(&grads[1], &dw_before), 2e-6);

            rms_norm_heads_backward(&cpu, &x, stride, offset, heads, &w, EPS, &mut frozen, None);
            assert_eq!(frozen, dx);
        }
    }
}

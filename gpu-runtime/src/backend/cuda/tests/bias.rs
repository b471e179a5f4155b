use super::simulated::on_device;
use super::support::{rows, values};
use crate::backend::cuda::ops::bias::{add_bias, bias_backward};
use crate::backend::host::HostParams;
use crate::backend::reference::{Matrix, Reference};
use crate::backend::{Backend, Held, WeightPart};

#[test]
fn biases_are_added_to_the_first_rows() {
    on_device(|device| {
        for (count, width) in [(1, 1), (3, 45), (2, 300)] {
            let (x, bias) = (values(count * width, 1), values(width, 2));
            let on_bias = device.upload(&bias).unwrap();
            for first in [0, 1, count] {
                let mut out = rows(device, &x, width);
                add_bias(device, &on_bias, first, &mut out).unwrap();
                let mut expected = x.clone();
                for row in expected.chunks_mut(width).take(first) {
                    row.iter_mut().zip(&bias).for_each(|(x, b)| *x += b);
                }
                assert_eq!(out.to_host().unwrap(), expected);
            }
            let mut out = rows(device, &x, width);
            assert!(add_bias(device, &on_bias, count + 1, &mut out).is_err());
            assert!(add_bias(device, &device.zeros(width + 1).unwrap(), count, &mut out).is_err());
        }
    });
}

#[test]
fn gradients_have_the_bits_of_rows_in_order() {
    on_device(|device| {
        for (count, width, columns) in [(1, 1, 0..1), (7, 45, 3..40), (5, 300, 0..300), (0, 4, 1..3), (3, 6, 2..2)] {
            let (dy, old) = (values(count * width, 3), values(columns.len(), 4));
            let mut db = device.upload(&old).unwrap();
            let on_dy = rows::<f32>(device, &dy, width);
            bias_backward(device, &on_dy, columns.clone(), &mut db).unwrap();
            let part = WeightPart { weight: 0, bias: Some(1), column: columns.start, outputs: columns.len() };
            let mut grads = HostParams::new(vec![vec![0.0; columns.len()], old]);
            let [x, dy] = [Matrix::new(vec![0.0; count], 1), Matrix::new(dy, width)].map(Held::Owned);
            Reference.weight_gradients(&[part], &[], &x, &dy, &mut grads);
            assert_eq!(db.to_host().unwrap(), grads[1]);
            assert!(bias_backward(device, &on_dy, columns.start..width + 1, &mut db).is_err());
            assert!(bias_backward(device, &on_dy, columns, &mut device.zeros(301).unwrap()).is_err());
        }
    });
}

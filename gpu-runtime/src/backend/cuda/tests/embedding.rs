use half::bf16;

use super::simulated::on_device;
use super::support::{Rounded, rounded, rows, values, wide};
use crate::backend::cuda::device::error::CudaError;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::embedding::{embed, embed_backward};
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::host::HostParams;
use crate::backend::reference::{Matrix, Reference};
use crate::backend::{Backend, EmbeddingGradient};

const TOKENS: [u32; 7] = [4, 0, 4, 8, 2, 4, 0];

fn rows_of_tokens<T: Rounded>(device: &CudaDevice, width: usize) {
    let table = wide(&rounded::<T>(&values(9 * width, 1)));
    for tokens in [&TOKENS[..], &TOKENS[..1], &[]] {
        let found = embed(device, &rows::<T>(device, &table, width), tokens, 1.5).unwrap();
        let expected = Reference.embed_table(&Matrix::new(table.clone(), width), width, tokens, 1.5);
        assert_eq!(found.to_host().unwrap(), expected.data());
        assert_eq!((found.rows(), found.width()), (tokens.len(), width));
    }
}

#[test]
fn rows_are_those_of_the_tokens() {
    on_device(|device| {
        for width in [1, 33, 300] {
            rows_of_tokens::<f32>(device, width);
            rows_of_tokens::<bf16>(device, width);
        }
    });
}

#[test]
fn gradients_of_a_token_are_added_in_order() {
    on_device(|device| {
        for width in [1, 70] {
            let (dx, old) = (values(7 * width, 2), values(9 * width, 3));
            let mut gradient = rows::<f32>(device, &old, width);
            embed_backward(device, &TOKENS, &rows(device, &dx, width), 0.7, gradient.data_mut()).unwrap();
            let mut expected = HostParams::new(vec![old]);
            let into = EmbeddingGradient::Param(&mut expected, 0);
            Reference.embed_backward(&TOKENS, &Matrix::new(dx, width), 0.7, into);
            assert_eq!(gradient.to_host().unwrap(), expected[0]);
        }
    });
}

#[test]
fn tokens_beyond_the_vocabulary_are_refused() {
    on_device(|device| {
        let mut table = DeviceRows::<f32>::zeros(device, 9, 4).unwrap();
        let refused = embed(device, &table, &[3, 9], 1.0);
        assert!(matches!(refused, Err(CudaError::Extent { found: 9, .. })), "{refused:?}");
        let dx = DeviceRows::zeros(device, 1, 4).unwrap();
        assert!(embed_backward(device, &[9], &dx, 1.0, table.data_mut()).is_err());
        assert!(embed_backward(device, &[1, 2], &dx, 1.0, table.data_mut()).is_err());
    });
}

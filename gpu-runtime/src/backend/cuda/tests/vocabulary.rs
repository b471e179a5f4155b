use super::simulated::on_device;
use super::support::{rows, values};
use crate::backend::VocabularyOps;
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::cuda::ops::vocabulary::{join_logits, spread};
use crate::backend::reference::{Matrix, Reference};

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn rows_are_spread() {
    on_device(|device| {
        for (at, count, width) in [(&[0][..], 1, 1), (&[4, 0, 2], 6, 45), (&[], 3, 7), (&[1], 2, 300)] {
            let from = values(at.len() * width, 1);
            let found = spread(device, &rows(device, &from, width), at, count);
            let expected = Reference::spread(&Reference, &Matrix::new(from, width), at, count);
            assert_eq!(bits(&found.unwrap().to_host().unwrap()), bits(expected.data()));
        }
        let from = rows::<f32>(device, &values(6, 2), 3);
        assert!(spread(device, &from, &[0], 4).is_err());
        assert!(spread(device, &from, &[0, 4], 4).is_err());
        assert!(spread(device, &from, &[1, 1], 4).is_err());
    });
}

#[test]
fn logits_of_ranks_are_joined() {
    on_device(|device| {
        for (ranks, width, vocabulary) in [(1, 5, 5), (3, 45, 100), (2, 300, 599)] {
            let parts: Vec<Vec<f32>> = (0..ranks).map(|rank| values(2 * width, rank)).collect();
            let on: Vec<Slice<f32>> = parts.iter().map(|part| device.upload(part).unwrap()).collect();
            let old = values(3 * vocabulary, 9);
            let mut out = rows(device, &old, vocabulary);
            join_logits(device, &on.iter().collect::<Vec<_>>(), 2, &mut out).unwrap();
            let mut expected: Vec<f32> = Vec::new();
            for row in 0..2 {
                let all: Vec<f32> = parts.iter().flat_map(|part| part[row * width..][..width].to_vec()).collect();
                expected.extend(&all[..vocabulary]);
            }
            expected.extend(&old[2 * vocabulary..]);
            assert_eq!(out.to_host().unwrap(), expected);
            let mut wide = DeviceRows::zeros(device, 3, ranks as usize * width + 1).unwrap();
            assert!(join_logits(device, &on.iter().collect::<Vec<_>>(), 2, &mut wide).is_err());
            assert!(join_logits(device, &on.iter().collect::<Vec<_>>(), 4, &mut out).is_err());
        }
        let (short, long) = (device.zeros(4).unwrap(), device.zeros(6).unwrap());
        let mut out = DeviceRows::zeros(device, 2, 4).unwrap();
        assert!(join_logits(device, &[&long, &short], 2, &mut out).is_err());
    });
}

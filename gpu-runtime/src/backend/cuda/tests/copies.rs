use half::bf16;

use super::simulated::on_device;
use super::support::{rounded, rows, values, wide};
use crate::backend::cuda::ops::copies::{gather, part_of_rows, round_bf16, scatter, shift};
use crate::backend::cuda::ops::rows::DeviceRows;

#[test]
fn rows_are_gathered_and_scattered() {
    on_device(|device| {
        for width in [1, 33, 300] {
            let host = values(5 * width, 81);
            let from = rows::<f32>(device, &host, width);
            let of = |row: usize| host[row * width..(row + 1) * width].to_vec();
            let found = gather(device, &from, &[4, 0, 4]).unwrap();
            assert_eq!(found.to_host().unwrap(), [of(4), of(0), of(4)].concat());
            let mut to = DeviceRows::zeros(device, 4, width).unwrap();
            scatter(device, &gather(device, &from, &[1, 2]).unwrap(), &[3, 0], &mut to).unwrap();
            assert_eq!(to.to_host().unwrap(), [of(2), vec![0.0; 2 * width], of(1)].concat());
            let part = part_of_rows(device, &from, 1..4, width.div_ceil(2)).unwrap();
            let expected: Vec<f32> = (1..4).flat_map(|row| of(row)[..width.div_ceil(2)].to_vec()).collect();
            assert_eq!(part.to_host().unwrap(), expected);
            let part = part_of_rows(device, &rows::<bf16>(device, &host, width), 1..4, width.div_ceil(2)).unwrap();
            assert_eq!(part.to_host().unwrap(), wide(&rounded::<bf16>(&expected)));
            assert!(gather(device, &from, &[5]).is_err() && scatter(device, &from, &[0, 1, 2, 3, 4], &mut to).is_err());
            assert!(part_of_rows(device, &from, 4..6, width).is_err());
        }
        assert_eq!(gather(device, &rows(device, &values(4, 82), 2), &[]).unwrap().rows(), 0);
    });
}

#[test]
fn elements_are_rounded_and_shifted() {
    on_device(|device| {
        let host = values(700, 83);
        let from = device.upload(&host).unwrap();
        let mut to = device.zeros::<bf16>(705).unwrap();
        round_bf16(device, &from, 10..700, &mut to, 3).unwrap();
        let expected = [vec![0.0; 3], wide(&rounded::<bf16>(&host[10..])), vec![0.0; 12]].concat();
        assert_eq!(wide(&to.to_host().unwrap()), expected);
        // Aligned, so that four are moved at once.
        let mut to = device.zeros::<bf16>(700).unwrap();
        round_bf16(device, &from, 8..699, &mut to, 4).unwrap();
        let expected = [vec![0.0; 4], wide(&rounded::<bf16>(&host[8..699])), vec![0.0; 5]].concat();
        assert_eq!(wide(&to.to_host().unwrap()), expected);
        let mut to = device.zeros::<f32>(300).unwrap();
        shift(device, &from, 5..300, 0.5, &mut to, 1).unwrap();
        let expected: Vec<f32> = host[5..300].iter().map(|x| x + 0.5).collect();
        assert_eq!(to.to_host().unwrap(), [vec![0.0], expected, vec![0.0; 4]].concat());
        assert!(round_bf16(device, &from, 0..701, &mut device.zeros(701).unwrap(), 0).is_err());
        assert!(shift(device, &from, 0..2, 0.0, &mut to, 299).is_err());
    });
}

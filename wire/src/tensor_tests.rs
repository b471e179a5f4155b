#![allow(clippy::unwrap_used, reason = "tests")]
use proptest::prelude::*;

use super::*;

fn dense_proto(dtype: DType, bytes: &[u8], shape: &[i64]) -> proto::Tensor {
    let encoding = proto::tensor::Encoding::Dense(Bytes::copy_from_slice(bytes));
    proto::Tensor { encoding: Some(encoding), dtype: dtype.into(), shape: shape.to_vec() }
}

fn csr_proto(values: &[i64], crow: &[i64], col: &[i64], shape: &[i64]) -> proto::Tensor {
    let csr =
        proto::SparseCsr { values: i64_bytes(values), crow_indices: i64_bytes(crow), col_indices: i64_bytes(col) };
    let encoding = proto::tensor::Encoding::SparseCsr(csr);
    proto::Tensor { encoding: Some(encoding), dtype: DType::Int64.into(), shape: shape.to_vec() }
}

fn read(tensor: &proto::Tensor) -> Result<Tensor, TensorError> {
    densify(tensor, 0, &mut ExpansionBudget::default())
}

#[test]
fn every_element_type_is_read() {
    let floats = read(&dense_proto(DType::Float32, &f32_bytes(&[1.5, -2.0]), &[2, 1])).unwrap();
    assert_eq!(floats, Tensor { shape: vec![2, 1], values: TensorValues::F32(vec![1.5, -2.0]) });
    let integers = read(&dense_proto(DType::Int64, &i64_bytes(&[-1, 1 << 40]), &[])).unwrap();
    assert_eq!(integers, Tensor::i64(vec![-1, 1 << 40]));
    let narrow = read(&dense_proto(DType::Int32, &(-7_i32).to_le_bytes(), &[1])).unwrap();
    assert_eq!(narrow, Tensor::i64(vec![-7]));
    let brain = read(&dense_proto(DType::Bfloat16, &0x3fc0_u16.to_le_bytes(), &[1])).unwrap();
    assert_eq!(brain, Tensor::f32(vec![1.5]));
}

#[test]
fn an_empty_shape_is_one_dimension() {
    assert_eq!(read(&dense_proto(DType::Float32, &f32_bytes(&[3.0]), &[])).unwrap(), Tensor::f32(vec![3.0]));
    assert_eq!(read(&dense_proto(DType::Float32, &[], &[])).unwrap(), Tensor::f32(vec![]));
}

#[test]
fn malformed_dense_tensors_are_refused() {
    let eight = [0_u8; 8];
    let refused = |tensor| read(&tensor).unwrap_err();
    assert!(matches!(refused(dense_proto(DType::Float32, &eight[..6], &[])), TensorError::Ragged { bytes: 6, .. }));
    assert_eq!(refused(dense_proto(DType::Unspecified, &eight, &[])), TensorError::DType(0));
    assert_eq!(refused(dense_proto(DType::Float32, &eight, &[-2])), TensorError::Shape(vec![-2]));
    assert!(matches!(refused(dense_proto(DType::Float32, &eight, &[i64::MAX, 4])), TensorError::Shape(_)));
    assert!(matches!(refused(dense_proto(DType::Float32, &eight, &[0; 9])), TensorError::Shape(_)));
    assert!(matches!(refused(dense_proto(DType::Float32, &eight, &[3])), TensorError::Count { found: 2, .. }));
    let mut unknown = dense_proto(DType::Float32, &eight, &[]);
    unknown.dtype = 77;
    assert_eq!(read(&unknown).unwrap_err(), TensorError::DType(77));
    unknown.encoding = None;
    assert_eq!(read(&unknown).unwrap_err(), TensorError::NoEncoding);
}

#[test]
fn sparse_rows_are_expanded() {
    let tensor = csr_proto(&[5, 6, 7], &[0, 2, 2, 3], &[0, 3, 1], &[3, 4]);
    let expanded = read(&tensor).unwrap();
    assert_eq!(expanded.shape, [3, 4]);
    assert_eq!(expanded.values, TensorValues::I64(vec![5, 0, 0, 6, 0, 0, 0, 0, 0, 7, 0, 0]));
    let filled = densify(&tensor, -1, &mut ExpansionBudget::default()).unwrap();
    assert_eq!(filled.values, TensorValues::I64(vec![5, -1, -1, 6, -1, -1, -1, -1, -1, 7, -1, -1]));
}

#[test]
fn malformed_sparse_tensors_are_refused() {
    let refused = |values: &[i64], crow: &[i64], col: &[i64], shape: &[i64]| {
        read(&csr_proto(values, crow, col, shape)).unwrap_err()
    };
    assert!(matches!(refused(&[1], &[0, 1], &[0], &[4]), TensorError::SparseRank(_)));
    assert!(matches!(refused(&[1], &[0, 1], &[0], &[]), TensorError::SparseRank(_)));
    assert!(matches!(refused(&[1], &[0, 1], &[0], &[-1, 2]), TensorError::Shape(_)));
    assert!(matches!(refused(&[1], &[0, 1], &[0], &[2, 2]), TensorError::IndexCount { part: "crow_indices", .. }));
    assert!(matches!(refused(&[1], &[], &[0], &[0, 2]), TensorError::IndexCount { part: "crow_indices", .. }));
    assert!(matches!(refused(&[1], &[0, 1], &[], &[1, 2]), TensorError::IndexCount { part: "col_indices", .. }));
    assert_eq!(refused(&[1], &[1, 1], &[0], &[1, 2]), TensorError::RowPointer(0));
    assert_eq!(refused(&[1], &[0, 0], &[0], &[1, 2]), TensorError::RowPointer(1));
    assert_eq!(refused(&[1], &[0, 2], &[0], &[1, 2]), TensorError::RowPointer(1));
    assert_eq!(refused(&[1, 2], &[0, 2, 1, 2], &[0, 1], &[3, 2]), TensorError::RowPointer(2));
    assert_eq!(refused(&[1], &[0, -1, 1], &[0], &[2, 2]), TensorError::RowPointer(1));
    for found in [2, -1, i64::MAX, i64::MIN] {
        assert_eq!(refused(&[1], &[0, 1], &[found], &[1, 2]), TensorError::Column { row: 0, columns: 2, found });
    }
    assert!(matches!(refused(&[1, 2], &[0, 2], &[1, 1], &[1, 2]), TensorError::Column { found: 1, .. }));
    assert!(matches!(refused(&[1, 2], &[0, 2], &[1, 0], &[1, 2]), TensorError::Column { found: 0, .. }));
}

#[test]
fn a_few_bytes_cannot_claim_gigabytes() {
    let huge = csr_proto(&[], &[0, 0], &[], &[1, 1 << 40]);
    assert_eq!(read(&huge).unwrap_err(), TensorError::TooLarge);
    assert!(matches!(read(&csr_proto(&[], &[0], &[], &[i64::MAX, 1])).unwrap_err(), TensorError::IndexCount { .. }));
    let mut budget = ExpansionBudget::default();
    let half = csr_proto(&[], &[0, 0], &[], &[1, (MAX_EXPANDED_ELEMENTS / 2 + 1) as i64]);
    densify(&half, 0, &mut budget).unwrap();
    assert_eq!(densify(&half, 0, &mut budget).unwrap_err(), TensorError::TooLarge, "the limit is the request's");
}

fn json(text: &str) -> TensorData {
    serde_json::from_str(text).unwrap()
}

#[test]
fn json_tensors_become_protobuf() {
    let floats = json(r#"{"data":[1,2.5],"dtype":"float32"}"#).to_proto().unwrap();
    assert_eq!(read(&floats).unwrap(), Tensor::f32(vec![1.0, 2.5]));
    let sparse =
        json(r#"{"data":[9],"dtype":"int64","shape":[2,3],"sparse_crow_indices":[0,0,1],"sparse_col_indices":[2]}"#);
    let expanded = read(&sparse.to_proto().unwrap()).unwrap();
    assert_eq!(expanded.values, TensorValues::I64(vec![0, 0, 0, 0, 0, 9]));
    assert_eq!(json(r#"{"data":[1.5],"dtype":"int64"}"#).to_proto(), Err(TensorError::Element(0, "int64")));
    assert_eq!(json(r#"{"data":[0,1e60],"dtype":"float32"}"#).to_proto(), Err(TensorError::Element(1, "float32")));
    let half = json(r#"{"data":[1],"dtype":"int64","shape":[1,1],"sparse_crow_indices":[0,1]}"#);
    assert_eq!(half.to_proto(), Err(TensorError::HalfSparse));
    assert!(serde_json::from_str::<TensorData>(r#"{"data":[1],"dtype":"int8"}"#).is_err());
    assert!(serde_json::from_str::<TensorData>(r#"{"data":[null],"dtype":"int64"}"#).is_err());
}

proptest! {
    #[test]
    fn arbitrary_tensors_never_panic(
        dtype in -1_i32..6,
        shape in prop::collection::vec(-2_i64..5, 0..4),
        values in prop::collection::vec(any::<u8>(), 0..40),
        crow in prop::collection::vec(-1_i64..6, 0..6),
        col in prop::collection::vec(-1_i64..6, 0..6),
        sparse in any::<bool>(),
    ) {
        let encoding = if sparse {
            proto::tensor::Encoding::SparseCsr(proto::SparseCsr {
                values: values.into(), crow_indices: i64_bytes(&crow), col_indices: i64_bytes(&col),
            })
        } else {
            proto::tensor::Encoding::Dense(values.into())
        };
        let tensor = proto::Tensor { encoding: Some(encoding), dtype, shape };
        if let Ok(read) = read(&tensor) {
            prop_assert_eq!(read.shape.iter().product::<usize>(), read.len());
        }
    }
}

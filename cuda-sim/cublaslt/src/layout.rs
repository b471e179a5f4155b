//! Descriptors of matrices and multiplications, behind handles.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// A `cublasStatus_t` other than success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) i32);

pub(crate) const NOT_INITIALIZED: Status = Status(1);
pub(crate) const INVALID_VALUE: Status = Status(7);
pub(crate) const EXECUTION_FAILED: Status = Status(13);
pub(crate) const NOT_SUPPORTED: Status = Status(15);

pub(crate) type Result<T = ()> = std::result::Result<T, Status>;

/// The types of elements, by their `cudaDataType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    F32,
    F16,
    Bf16,
}

impl Element {
    pub(crate) fn from_number(number: u32) -> Result<Self> {
        match number {
            0 => Ok(Self::F32),
            2 => Ok(Self::F16),
            14 => Ok(Self::Bf16),
            _ => Err(NOT_SUPPORTED),
        }
    }

    pub(crate) fn size(self) -> usize {
        if self == Self::F32 { 4 } else { 2 }
    }
}

/// A matrix in device memory: column after column, or row after row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) element: Element,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// Elements from one column (or row) to the next.
    pub(crate) stride: usize,
    pub(crate) by_rows: bool,
    pub(crate) batch: usize,
    /// Elements from one matrix of a batch to the next.
    pub(crate) batch_stride: i64,
}

/// Options of a multiplication, from its descriptor.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Operation {
    pub(crate) transpose_a: bool,
    pub(crate) transpose_b: bool,
    /// Inputs are rounded to tf32.
    pub(crate) tf32: bool,
    /// The address of a bias for each row of D; its type is D's.
    pub(crate) bias: Option<u64>,
}

/// Objects by their handles, which are never null and never used twice.
pub(crate) struct Table<T>(Mutex<(usize, BTreeMap<usize, T>)>);

impl<T: Copy> Table<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new((1, BTreeMap::new())))
    }

    pub(crate) fn add(&self, value: T) -> usize {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = table.0 << 4;
        table.0 += 1;
        table.1.insert(handle, value);
        handle
    }

    pub(crate) fn get(&self, handle: usize) -> Result<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.get(&handle).copied().ok_or(INVALID_VALUE)
    }

    pub(crate) fn change(&self, handle: usize, change: impl FnOnce(&mut T) -> Result) -> Result {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(table.1.get_mut(&handle).ok_or(INVALID_VALUE)?)
    }

    pub(crate) fn remove(&self, handle: usize) -> Result {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.1.remove(&handle).map(|_| ()).ok_or(INVALID_VALUE)
    }
}

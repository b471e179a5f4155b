//! The C functions of cuBLASLt. Pointers are used as NVIDIA's documentation allows.
#![allow(unsafe_code, reason = "functions that C calls, with its pointers")]
#![allow(non_snake_case, reason = "the names of cuBLASLt's functions")]

use std::ffi::{c_int, c_void};

use cuda_sim_client::Client;

use crate::faults::Behaviour;
use crate::file::file_name;
use crate::layout::{
    EXECUTION_FAILED, Element, INVALID_VALUE, Layout, NOT_INITIALIZED, NOT_SUPPORTED, Operation, Result, Table,
};
use crate::multiply::Multiplication;

static LAYOUTS: Table<Layout> = Table::new();
static OPERATIONS: Table<Operation> = Table::new();

/// Compute types with sums in f32: plain, and with inputs rounded to tf32.
const COMPUTE_F32: u32 = 68;
const COMPUTE_F32_TF32: u32 = 77;

/// Bytes of an algorithm, and of a result of the heuristic, whose first bytes are an algorithm.
const ALGORITHM: usize = 64;
const HEURISTIC: usize = 96;

macro_rules! exported {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        #[allow(unused_unsafe, reason = "some functions use no pointer")]
        unsafe extern "C" fn $name($($arg: $ty),*) -> i32 {
            // SAFETY: the caller keeps the contract of cuBLASLt for the pointers that it passes.
            let body = || -> Result { unsafe { $body } };
            match body() {
                Ok(()) => 0,
                Err(status) => status.0,
            }
        }
    )*};
}

/// # Safety
///
/// `to` is null or writable.
unsafe fn put<T>(to: *mut T, value: T) -> Result {
    if to.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null, and writable by the contract of this function.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// # Safety
///
/// `from` is null or holds a value of this type.
unsafe fn get<T: Copy>(from: *const c_void, length: usize) -> Result<T> {
    if from.is_null() || length < size_of::<T>() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null, and readable by the contract of this function.
    Ok(unsafe { from.cast::<T>().read_unaligned() })
}

fn compute(operation: &mut Operation, compute: u32) -> Result {
    operation.tf32 = match compute {
        COMPUTE_F32 => false,
        COMPUTE_F32_TF32 => true,
        _ => return Err(NOT_SUPPORTED),
    };
    Ok(())
}

/// Whether a `cublasOperation_t` stands for a transposition.
fn transposed(operation: i32) -> Result<bool> {
    match operation {
        0 => Ok(false),
        1 | 2 => Ok(true),
        _ => Err(INVALID_VALUE),
    }
}

/// The version that the library reports: 13.0.0, or 11.11.3 if the variable `CUDASIM_LT_OLD` has the name of its file.
#[unsafe(no_mangle)]
extern "C" fn cublasLtGetVersion() -> usize {
    if is_named("CUDASIM_LT_OLD") { 111_103 } else { 130_000 }
}

/// Whether a variable has the name of the file of this library.
fn is_named(variable: &str) -> bool {
    let own = cublasLtGetVersion as *const () as usize;
    std::env::var(variable).is_ok_and(|name| file_name(own).is_some_and(|file| file == name))
}

exported! {
    fn cublasLtCreate(handle: *mut usize) {
        if is_named("CUDASIM_LT_REFUSE") {
            return Err(NOT_INITIALIZED);
        }
        Client::open().map_err(|_| NOT_INITIALIZED)?;
        put(handle, 1)
    }

    fn cublasLtDestroy(_handle: usize) {
        Ok(())
    }

    fn cublasLtMatrixLayoutCreate(handle: *mut usize, element: u32, rows: u64, columns: u64, stride: i64) {
        let stride = usize::try_from(stride).map_err(|_| INVALID_VALUE)?;
        let (rows, columns) = (rows as usize, columns as usize);
        let element = Element::from_number(element)?;
        put(handle, LAYOUTS.add(Layout { element, rows, columns, stride, by_rows: false, batch: 1, batch_stride: 0 }))
    }

    fn cublasLtMatrixLayoutDestroy(handle: usize) {
        LAYOUTS.remove(handle)
    }

    fn cublasLtMatrixLayoutSetAttribute(handle: usize, attribute: c_int, value: *const c_void, length: usize) {
        LAYOUTS.change(handle, |layout| {
            match attribute {
                1 => layout.by_rows = get::<i32>(value, length)? == 1,
                2 => layout.rows = get::<u64>(value, length)? as usize,
                3 => layout.columns = get::<u64>(value, length)? as usize,
                4 => layout.stride = get::<i64>(value, length)? as usize,
                5 => layout.batch = get::<i32>(value, length)? as usize,
                6 => layout.batch_stride = get::<i64>(value, length)?,
                _ => return Err(NOT_SUPPORTED),
            }
            Ok(())
        })
    }

    fn cublasLtMatmulDescCreate(handle: *mut usize, kind: u32, scale: u32) {
        if scale != 0 {
            return Err(NOT_SUPPORTED);
        }
        let mut operation = Operation::default();
        compute(&mut operation, kind)?;
        put(handle, OPERATIONS.add(operation))
    }

    fn cublasLtMatmulDescDestroy(handle: usize) {
        OPERATIONS.remove(handle)
    }

    fn cublasLtMatmulDescSetAttribute(handle: usize, attribute: c_int, value: *const c_void, length: usize) {
        OPERATIONS.change(handle, |operation| {
            match attribute {
                0 => compute(operation, get(value, length)?)?,
                // Scale factors are f32 in host memory.
                1 | 2 if get::<i32>(value, length)? == 0 => {}
                3 => operation.transpose_a = transposed(get(value, length)?)?,
                4 => operation.transpose_b = transposed(get(value, length)?)?,
                5 if !transposed(get(value, length)?)? => {}
                // The epilogue: none, or a bias whose address follows.
                7 if get::<u32>(value, length)? == 1 => operation.bias = None,
                7 if get::<u32>(value, length)? == 4 => {}
                8 => operation.bias = Some(get(value, length)?),
                _ => return Err(NOT_SUPPORTED),
            }
            Ok(())
        })
    }

    fn cublasLtMatmulPreferenceCreate(handle: *mut usize) {
        put(handle, 1)
    }

    fn cublasLtMatmulPreferenceDestroy(_handle: usize) {
        Ok(())
    }

    fn cublasLtMatmulPreferenceSetAttribute(_handle: usize, _attribute: c_int, _value: *const c_void, _length: usize) {
        Ok(())
    }

    fn cublasLtMatmulAlgoGetHeuristic(
        _handle: usize,
        operation: usize,
        a: usize, b: usize, c: usize, d: usize,
        _preference: usize,
        requested: c_int,
        results: *mut [u8; HEURISTIC],
        found: *mut c_int,
    ) {
        let layouts = [LAYOUTS.get(a)?, LAYOUTS.get(b)?, LAYOUTS.get(c)?, LAYOUTS.get(d)?];
        let operation = OPERATIONS.get(operation)?;
        Multiplication { operation, alpha: 1.0, beta: 0.0, layouts, addresses: [0; 4], algorithm: 0 }.check()?;
        if requested < 1 {
            return Err(INVALID_VALUE);
        }
        // All algorithms are without workspace, and their state is success.
        let (behaviour, rows) = (Behaviour::of_process(), layouts[3].columns);
        let count = behaviour.algorithms.min(requested.min(c_int::from(u8::MAX)) as u8);
        for nth in 0..count {
            let mut result = [0; HEURISTIC];
            result[0] = behaviour.algorithm(nth, rows);
            put(results.wrapping_add(usize::from(nth)), result)?;
        }
        put(found, c_int::from(count))
    }

    fn cublasLtMatmulAlgoInit(
        _handle: usize, _compute: u32, _scale: u32, _a: u32, _b: u32, _c: u32, _d: u32, id: c_int,
        algorithm: *mut [u8; ALGORITHM],
    ) {
        let mut chosen = [0; ALGORITHM];
        chosen[0] = u8::try_from(id).map_err(|_| INVALID_VALUE)?;
        put(algorithm, chosen)
    }

    fn cublasLtMatmulAlgoConfigSetAttribute(
        _algorithm: *mut [u8; ALGORITHM], _attribute: c_int, _value: *const c_void, _length: usize,
    ) {
        Ok(())
    }

    fn cublasLtMatmul(
        _handle: usize,
        operation: usize,
        alpha: *const c_void,
        a: u64, a_layout: usize,
        b: u64, b_layout: usize,
        beta: *const c_void,
        c: u64, c_layout: usize,
        d: u64, d_layout: usize,
        algorithm: *const c_void,
        _workspace: u64, _workspace_bytes: usize,
        stream: usize,
    ) {
        let layouts = [a_layout, b_layout, c_layout, d_layout];
        let [a_layout, b_layout, c_layout, d_layout] = layouts.map(|handle| LAYOUTS.get(handle));
        let multiplication = Multiplication {
            operation: OPERATIONS.get(operation)?,
            alpha: get(alpha, 4)?,
            beta: get(beta, 4)?,
            layouts: [a_layout?, b_layout?, c_layout?, d_layout?],
            addresses: [a, b, c, d],
            algorithm: if algorithm.is_null() { 0 } else { get::<[u8; ALGORITHM]>(algorithm, ALGORITHM)?[0] },
        };
        multiplication.check()?;
        let client = Client::open().map_err(|_| NOT_INITIALIZED)?;
        // What goes wrong with memory stops the device, and is said there.
        let work = move |client: &Client| drop(multiplication.run(client));
        client.call(stream, "cublasLtMatmul", Box::new(work)).map_err(|_| EXECUTION_FAILED)
    }
}

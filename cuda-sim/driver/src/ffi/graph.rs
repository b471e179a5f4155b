//! Driver functions for capture and graphs.

use std::ffi::{c_int, c_ulonglong};

use crate::driver::{split, try_with};
use crate::error::INVALID_HANDLE;
use crate::ffi::memory::submit;
use crate::ffi::{exported, put};

exported! {
    fn cuStreamBeginCapture_v2(stream: usize, _mode: c_int) {
        let (index, stream) = split(stream)?;
        try_with(|driver| driver.device(index)?.begin_capture(stream))
    }

    fn cuStreamEndCapture(stream: usize, graph: *mut usize) {
        let (index, stream) = split(stream)?;
        let handle = try_with(|driver| {
            let captured = driver.device(index)?.end_capture(stream)?;
            let handle = driver.handle();
            driver.graphs.insert(handle, captured);
            Ok(handle)
        })?;
        put(graph, handle)
    }

    fn cuStreamIsCapturing(stream: usize, status: *mut c_int) {
        let (index, stream) = split(stream)?;
        put(status, try_with(|driver| Ok(c_int::from(driver.device(index)?.stream(stream)?.capture.is_some())))?)
    }

    fn cuGraphInstantiateWithFlags(executable: *mut usize, graph: usize, _flags: c_ulonglong) {
        let handle = try_with(|driver| {
            let graph = driver.graphs.get(&graph).cloned().ok_or(INVALID_HANDLE)?;
            let handle = driver.handle();
            driver.graphs.insert(handle, graph);
            Ok(handle)
        })?;
        put(executable, handle)
    }

    fn cuGraphLaunch(executable: usize, stream: usize) {
        let graph = try_with(|driver| driver.graphs.get(&executable).cloned().ok_or(INVALID_HANDLE))?;
        for work in graph.work {
            submit(stream, work)?;
        }
        Ok(())
    }

    fn cuGraphUpload(executable: usize, _stream: usize) {
        try_with(|driver| driver.graphs.get(&executable).map(|_| ()).ok_or(INVALID_HANDLE))
    }

    fn cuGraphDestroy(graph: usize) {
        try_with(|driver| driver.graphs.remove(&graph).map(|_| ()).ok_or(INVALID_HANDLE))
    }

    fn cuGraphExecDestroy(executable: usize) {
        try_with(|driver| driver.graphs.remove(&executable).map(|_| ()).ok_or(INVALID_HANDLE))
    }
}

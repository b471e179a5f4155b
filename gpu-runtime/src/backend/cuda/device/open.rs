//! A device with its memory and its kernels.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cubins::KernelCode;
use super::driver::Driver;
use super::error::Result;
use super::fence::Fence;
use super::memory::{Arena, Element, Slice};
use super::queue::Queue;
use crate::backend::cuda::kernels::{Argument, Kernels};
use crate::collective::DeviceMemory;

/// A GPU. Ops run on one stream, in the order in which they are called; host code waits for them only where it reads elements.
pub struct CudaDevice {
    kernels: Kernels,
    arena: Arc<Arena>,
    queue: Arc<Queue>,
    cublaslt: Option<PathBuf>,
}

impl CudaDevice {
    /// Opens device `ordinal`: finds the driver and loads the kernels. Up to `retained_bytes` of free memory are
    /// retained for reuse.
    ///
    /// # Errors
    ///
    /// Fails if the driver or the device is missing, or the kernels do not run on the device.
    pub fn open(ordinal: i32, retained_bytes: usize) -> Result<Self> {
        let queue = Arc::new(Queue::new(Driver::open(ordinal)?));
        let kernels = Kernels::load(&queue)?;
        Ok(Self { kernels, arena: Arc::new(Arena::new(queue.clone(), retained_bytes)), queue, cublaslt: None })
    }

    /// Sets the path of the cuBLASLt that GEMMs of the device use; by default it is searched.
    #[must_use]
    pub fn with_cublaslt(self, cublaslt: Option<PathBuf>) -> Self {
        Self { cublaslt, ..self }
    }

    pub(crate) fn cublaslt(&self) -> Option<&Path> {
        self.cublaslt.as_deref()
    }

    /// Returns the driver's name for the device.
    pub fn name(&self) -> Result<String> {
        self.queue.name()
    }

    /// Returns the size of the device's memory, and what is free of it.
    pub fn memory(&self) -> Result<DeviceMemory> {
        self.queue.memory()
    }

    /// Returns the newest version of CUDA that the driver supports: major, minor.
    pub fn driver_version(&self) -> Result<[i32; 2]> {
        self.queue.version()
    }

    /// Returns the compute capability of the device: major, minor.
    pub fn capability(&self) -> (i32, i32) {
        self.queue.capability()
    }

    /// Returns the code that the device runs: cubins or PTX.
    pub fn kernel_code(&self) -> &KernelCode {
        self.kernels.code()
    }

    /// Number of the device.
    pub fn ordinal(&self) -> i32 {
        self.queue.ordinal()
    }

    /// The arena that manages the device's memory.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Waits for all work, and returns the first error in it.
    pub fn synchronize(&self) -> Result {
        self.queue.synchronize()
    }

    /// Allocates uninitialised elements, which must be written before they are read.
    pub fn uninitialised<T: Element>(&self, len: usize) -> Result<Slice<T>> {
        Slice::uninitialised(&self.arena, len)
    }

    /// Allocates a slice of zeros.
    pub fn zeros<T: Element>(&self, len: usize) -> Result<Slice<T>> {
        let mut slice = self.uninitialised(len)?;
        slice.clear()?;
        Ok(slice)
    }

    /// Copies elements of the host to the device.
    pub fn upload<T: Element>(&self, values: &[T]) -> Result<Slice<T>> {
        let mut slice = self.uninitialised(values.len())?;
        slice.write(0, values)?;
        Ok(slice)
    }

    /// Returns the number of passes that were launched as one CUDA graph.
    pub fn launched_graphs(&self) -> u64 {
        self.queue.launched_graphs()
    }

    /// Returns how often the host has waited for all work.
    pub fn waits(&self) -> u64 {
        self.queue.waits()
    }

    /// Returns a fence behind all work that was requested so far: [`Slice::read`] sees its results, and is not delayed
    /// by later work.
    pub fn fence(&self) -> Result<Fence> {
        Fence::new(&self.queue)
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// Launches a kernel on a grid of blocks (x, y, z) of `threads` each.
    pub(crate) fn launch(&self, name: &str, grid: [u32; 3], threads: u32, arguments: &[Argument<'_>]) -> Result {
        self.kernels.launch(&self.queue, name, grid, threads, arguments)
    }
}

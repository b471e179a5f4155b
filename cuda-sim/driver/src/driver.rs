//! The process' driver: devices, modules, and what threads wait for.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cuda_sim_ptx::{Module, Op};

use crate::config::{Config, PeerAccess};
use crate::cubin::Cubins;
use crate::device::{Device, Step};
use crate::error::{Code, INVALID_CONTEXT, INVALID_HANDLE, NOT_INITIALIZED, Result};
use crate::ffi::host::HostCall;
use crate::graph::Graph;
use crate::image::{self, Image};
use crate::work::LoadedKernel;

/// Bits of a handle that say what it is; streams and events name their device in further bits.
const DEVICE_SHIFT: u32 = 32;

#[derive(Debug, Default)]
pub(crate) struct Driver {
    pub(crate) devices: Vec<Device>,
    /// Compute capability of each of them.
    pub(crate) capability: (u32, u32),
    pub(crate) peer_access: PeerAccess,
    pub(crate) stub: bool,
    cubins: Cubins,
    modules: BTreeMap<usize, LoadedModule>,
    functions: BTreeMap<usize, LoadedKernel>,
    pub(crate) graphs: BTreeMap<usize, Graph>,
    pub(crate) initialised: bool,
    next: usize,
}

#[derive(Debug)]
struct LoadedModule {
    functions: BTreeMap<String, usize>,
    /// Variables with name, address and bytes.
    variables: Vec<(String, u64, usize)>,
    device: usize,
}

static DRIVER: Mutex<Option<Driver>> = Mutex::new(None);

/// Signalled whenever a call of the host returned.
static PROGRESS: Condvar = Condvar::new();

thread_local! {
    /// The device of the thread's current context.
    static CURRENT: Cell<Option<usize>> = const { Cell::new(None) };
    /// The operation that the thread's call of the host belongs to.
    static CALLING: RefCell<Option<(usize, Op)>> = const { RefCell::new(None) };
}

fn lock() -> MutexGuard<'static, Option<Driver>> {
    DRIVER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls a function with the driver, which starts at the first call.
pub(crate) fn with<T>(f: impl FnOnce(&mut Driver) -> T) -> T {
    f(lock().get_or_insert_with(Driver::new))
}

/// Like `with`, but for functions that can fail.
pub(crate) fn try_with<T>(f: impl FnOnce(&mut Driver) -> Result<T>) -> Result<T> {
    with(f)
}

/// Calls a function with the device of the thread's context.
pub(crate) fn with_current<T>(f: impl FnOnce(&mut Device) -> Result<T>) -> Result<T> {
    let index = current()?;
    with(|driver| {
        let device = driver.device(index)?;
        match device.error {
            Some(code) => Err(code),
            None => f(device),
        }
    })
}

/// The device of the thread's context.
pub(crate) fn current() -> Result<usize> {
    CURRENT.get().ok_or(INVALID_CONTEXT)
}

pub(crate) fn set_current(device: Option<usize>) {
    CURRENT.set(device);
}

/// Device and operation with which the thread's call of the host may touch memory.
pub(crate) fn calling() -> Option<(usize, Op)> {
    CALLING.with_borrow(Clone::clone)
}

/// A stream or event and its device.
pub(crate) fn split(handle: usize) -> Result<(usize, usize)> {
    if handle == 0 {
        return Ok((current()?, 0));
    }
    let device = (handle >> DEVICE_SHIFT).checked_sub(1).ok_or(INVALID_HANDLE)?;
    Ok((device, handle & ((1 << DEVICE_SHIFT) - 1)))
}

/// The handle of a stream or event of a device.
pub(crate) fn join(device: usize, number: usize) -> usize {
    ((device + 1) << DEVICE_SHIFT) | number
}

impl Driver {
    fn new() -> Self {
        let config = Config::from_env();
        let devices = (0..config.devices).map(|index| Device::new(index, &config)).collect();
        let (capability, cubins) = (config.capability, Cubins::new(&config));
        Self {
            devices,
            capability,
            peer_access: config.peer_access,
            stub: config.stub,
            cubins,
            next: 1,
            ..Self::default()
        }
    }

    pub(crate) fn device(&mut self, index: usize) -> Result<&mut Device> {
        if !self.initialised {
            return Err(NOT_INITIALIZED);
        }
        self.devices.get_mut(index).ok_or(INVALID_HANDLE)
    }

    /// A handle for a module, a function or a graph.
    pub(crate) fn handle(&mut self) -> usize {
        self.next += 1;
        (self.next - 1) << 4
    }

    /// Loads a module: its variables are allocated, its kernels told where.
    pub(crate) fn load(&mut self, image: &Image, device: usize) -> Result<usize> {
        let mut module = match image {
            Image::Text(text) => image::parse(text)?,
            Image::Cubin(bytes) => self.cubins.module(bytes, self.capability.0, self.capability.1)?,
        };
        let memory = &mut self.device(device)?.memory;
        let mut variables = Vec::new();
        for variable in module.variables() {
            let address = memory.allocate(variable.size as u64)?;
            let mut bytes = variable.initial.clone();
            bytes.resize(variable.size, 0);
            memory.write(address, &bytes).map_err(|stop| Code::from(&stop))?;
            if variable.constant {
                memory.make_constant(address);
            }
            variables.push((variable.name.clone(), address, variable.size));
        }
        let addresses: Vec<u64> = variables.iter().map(|(_, address, _)| *address).collect();
        module.place(&addresses);
        let functions = self.add_functions(&module);
        let handle = self.handle();
        self.modules.insert(handle, LoadedModule { functions, variables, device });
        Ok(handle)
    }

    fn add_functions(&mut self, module: &Module) -> BTreeMap<String, usize> {
        let mut functions = BTreeMap::new();
        for kernel in module.kernels() {
            let handle = self.handle();
            self.functions.insert(handle, Arc::new(kernel.clone()));
            functions.insert(kernel.name().to_owned(), handle);
        }
        functions
    }

    pub(crate) fn unload(&mut self, module: usize) -> Result {
        let module = self.modules.remove(&module).ok_or(INVALID_HANDLE)?;
        for function in module.functions.values() {
            self.functions.remove(function);
        }
        let memory = &mut self.device(module.device)?.memory;
        for (_, address, _) in &module.variables {
            memory.free(*address)?;
        }
        Ok(())
    }

    pub(crate) fn function(&self, module: usize, name: &str) -> Result<usize> {
        let module = self.modules.get(&module).ok_or(INVALID_HANDLE)?;
        module.functions.get(name).copied().ok_or(crate::error::NOT_FOUND)
    }

    /// Address and bytes of a module's variable.
    pub(crate) fn variable(&self, module: usize, name: &str) -> Result<(u64, usize)> {
        let module = self.modules.get(&module).ok_or(INVALID_HANDLE)?;
        let found = module.variables.iter().find(|(known, ..)| known == name);
        found.map(|(_, address, size)| (*address, *size)).ok_or(crate::error::NOT_FOUND)
    }

    pub(crate) fn kernel(&self, function: usize) -> Result<LoadedKernel> {
        self.functions.get(&function).cloned().ok_or(INVALID_HANDLE)
    }
}

/// Runs a call of the host that a stream has come to.
fn run_call(device: usize, stream: usize, call: &HostCall, op: Op) {
    let before = CALLING.replace(Some((device, op)));
    call.run();
    CALLING.set(before);
    if let Some(entry) = lock().as_mut().and_then(|driver| driver.devices.get_mut(device)) {
        entry.call_ended(stream);
    }
    PROGRESS.notify_all();
}

/// Runs a call of the host on a thread of its own: it may wait for other ranks, and must not block the calling thread.
fn spawn_call(device: usize, stream: usize, call: HostCall, op: Op) {
    std::thread::spawn(move || run_call(device, stream, &call, op));
}

/// Runs one operation of a device that fits a condition, for a caller that waits for something else; whether there was one.
pub(crate) fn progress(device: usize, condition: impl Fn(&Device) -> bool) -> bool {
    let mut guard = lock();
    let Some(entry) = guard.as_mut().and_then(|driver| driver.devices.get_mut(device)) else { return false };
    if entry.error.is_some() || !condition(entry) {
        return false;
    }
    match entry.step() {
        Step::Ran => true,
        Step::Call { stream, call, op } => {
            spawn_call(device, stream, call, op);
            true
        }
        Step::Idle => false,
    }
}

/// How far [`advance`] goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// A number of operations at most; fewer if no more can run now: by chance, or for a host that polls.
    UpTo(usize),
    /// Until the condition holds, also while other threads run what it needs.
    Wait,
}

/// Runs operations of a device, on any of its streams, until a condition holds or the extent is reached. Calls that may wait for other
/// ranks run on threads of their own, so that no caller waits for more than its condition. Other calls of the host run on this thread.
///
/// # Errors
///
/// What stopped the device.
pub(crate) fn advance(device: usize, extent: Extent, done: impl Fn(&mut Device) -> Result<bool>) -> Result {
    let mut steps = 0;
    let mut guard = lock();
    loop {
        let driver = guard.as_mut().ok_or(NOT_INITIALIZED)?;
        let entry = driver.device(device)?;
        if let Some(code) = entry.error {
            return Err(code);
        }
        if done(entry)? || matches!(extent, Extent::UpTo(limit) if steps >= limit) {
            return Ok(());
        }
        steps += 1;
        match entry.step() {
            Step::Ran => {}
            Step::Call { stream, call, op } if call.group.is_some() => spawn_call(device, stream, call, op),
            Step::Call { stream, call, op } => {
                drop(guard);
                run_call(device, stream, &call, op);
                guard = lock();
            }
            Step::Idle if extent != Extent::Wait => return Ok(()),
            // Another thread runs a call that the condition needs.
            Step::Idle => {
                let waited = PROGRESS.wait_timeout(guard, Duration::from_millis(20));
                guard = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
}

//! An engine together with the facts that its process needs about it.

use trainyard_gpu_runtime::backend::{Backend, DeviceInfo};
use trainyard_gpu_runtime::{Engine as OneRank, ParallelEngine, RankFolders};
use trainyard_protocol::Engine;

/// An engine, the handle that makes ranks in other processes fetch folders, and the description of a rank's device.
pub(crate) type Linked = (Box<dyn Engine>, Option<RankFolders>, DeviceInfo);

/// Describes an engine of one rank.
pub(crate) fn one<B: Backend>(engine: OneRank<B>) -> Linked {
    let device = engine.backend().device();
    (Box::new(engine), None, device)
}

/// Describes an engine of several ranks.
pub(crate) fn several<B: Backend>(engine: ParallelEngine<B>) -> Linked {
    let (folders, device) = (engine.folders().cloned(), engine.backend().device());
    (Box::new(engine), folders, device)
}

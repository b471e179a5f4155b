//! The device layer: driver, memory, copies, graphs and libraries, without knowledge of ops or kernels.

pub(crate) mod cubins;
pub(crate) mod cublaslt;
pub(crate) mod driver;
mod element;
pub(crate) mod error;
mod event;
pub(crate) mod facts;
pub(crate) mod fence;
mod graphs;
pub(crate) mod library;
mod maps;
pub(crate) mod memory;
pub(crate) mod modules;
pub(crate) mod nccl;
pub(crate) mod open;
mod opened;
pub(crate) mod page_locked;
pub(crate) mod peers;
mod pool;
pub(crate) mod queue;
mod reads;
pub(crate) mod sources;
mod transfers;
mod uploads;
pub(crate) mod wheels;
pub(crate) mod work;

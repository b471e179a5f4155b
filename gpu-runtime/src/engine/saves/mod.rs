//! Saves: the state of a run or a sampler snapshot at the moment of a save, the threads that write and read it, and its
//! files.

pub(crate) mod background;
mod frozen_run;
pub(crate) mod loads;
pub(crate) mod reader;
pub(crate) mod snapshots;
pub(crate) mod writer;

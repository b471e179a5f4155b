//! Data parallelism with divided state (ZeRO, Rajbhandari et al. 2020, arXiv:1910.02054): what replicas hold, gather and reduce.

pub(crate) mod gathered;
mod part_exchange;
pub(crate) mod replicas;
pub(crate) mod units;
pub(crate) mod weight_source;

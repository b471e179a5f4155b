//! Collectives behind NCCL's functions, for ranks that are threads or processes of one machine.
//!
//! The process that makes the id runs a hub: a thread that listens on a Unix socket. In each round every rank sends what
//! it calls and its data; the hub checks that all call the same, computes, and answers. Sums are in the order of ranks.
//! A rank that goes away, and one that never comes, end the round with an error instead of a hang.

mod comm;
mod exchange;
mod ffi;
mod group;
mod handles;
mod hub;
mod message;
mod reduce;
mod running;

//! Collectives behind NCCL's functions, for ranks that are threads or processes of one machine.
//!
//! The process that makes the id runs a hub: a thread that listens on a Unix socket. In each round every rank sends what
//! it calls and its data; the hub checks that all call the same, computes, and answers. Sums are in the order of ranks.
//! A rank that goes away, and one that never comes, end the round with an error instead of a hang.
//!
//! Threads: the hub and, in its process, one for each rank, which reads what the rank calls; in each process with a
//! communicator, the progress thread, which lets devices come to their collectives; and for each collective that runs, one
//! that the driver starts and that waits for the hub's answer.

mod comm;
mod exchange;
mod ffi;
mod group;
mod handles;
mod hub;
mod message;
mod neighbours;
mod numbers;
mod progress_thread;
mod reduce;

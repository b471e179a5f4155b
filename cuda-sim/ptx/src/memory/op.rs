//! Operations that access memory.

/// An operation on a stream: a launch, a copy, a library's call.
#[derive(Debug, Clone, Default)]
pub struct Op {
    /// Number from [`Memory::begin`](crate::Memory::begin); a launch without one begins its own operation.
    pub id: u32,
    /// Operations that ran already, although nothing orders them before this one.
    pub concurrent: Vec<u32>,
}

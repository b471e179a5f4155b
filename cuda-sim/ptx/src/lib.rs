//! An interpreter of PTX, the assembly language that NVIDIA's compilers emit, for tests on machines without a GPU.
//!
//! It runs a kernel as a GPU would, warp by warp in a seeded random order, and stops with a precise message where a GPU
//! would give a wrong answer now and then: races in shared and global memory, addresses out of bounds or misaligned,
//! reads of memory that nobody wrote, warp operations that some lanes never reach. It also counts what a kernel moves.
//!
//! [`Module::parse`] reads the text, [`Memory`] is the device's memory, and [`launch`] runs a kernel.
//!
//! ```
//! use cuda_sim_ptx::{Launch, Memory, Module, Op, launch};
//!
//! let text = ".version 8.0\n.target sm_80\n.address_size 64\n\
//!     .visible .entry twice(.param .u64 values) {\n\
//!     .reg .b64 %rd<4>; .reg .b32 %r<4>;\n\
//!     ld.param.u64 %rd1, [values]; mov.u32 %r1, %tid.x;\n\
//!     mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;\n\
//!     ld.global.u32 %r2, [%rd3]; add.s32 %r3, %r2, %r2; st.global.u32 [%rd3], %r3; ret; }";
//! let module = Module::parse(text)?;
//! let mut memory = Memory::new(1 << 20);
//! let address = memory.allocate(8)?;
//! memory.write(address, &[1, 0, 0, 0, 2, 0, 0, 0])?;
//! let twice = module.kernel("twice").ok_or("no such kernel")?;
//! launch(&Launch::new(twice, 1, 2, &address.to_le_bytes()), &mut memory, &Op::default())?;
//! assert_eq!(memory.read(address, 8)?, [2, 0, 0, 0, 4, 0, 0, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod counters;
mod decode;
mod exec;
mod instruction;
mod lexer;
mod memory;
mod module;
mod parse;
mod random;
mod row;
mod stop;
mod types;
mod value;

pub use counters::Counters;
pub use exec::launch::launch;
pub use exec::machine::{Dim, Launch};
pub use memory::{Memory, MemoryError, Op};
pub use module::{Kernel, Module, Param, Variable};
pub use parse::ParseError;
pub use random::Random;
pub use stop::{Stop, StopKind};

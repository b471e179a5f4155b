//! Memory that an idle process releases.

use std::sync::PoisonError;

use crate::cpu::Cpu;
use crate::cpu::aligned::capacity_for;
use crate::cpu::buffer::POOLS;
use crate::memory;

#[test]
fn free_buffers_are_released() {
    let _alone = POOLS.write().unwrap_or_else(PoisonError::into_inner);
    let cpu = Cpu::new(1);
    let held = cpu.buffer(1000);
    drop(cpu.buffer(5000));
    assert_eq!(cpu.usage.free(), 4 * capacity_for::<f32>(5000));
    memory::release_free();
    assert_eq!((cpu.usage.free(), held.len()), (0, 1000));
    drop(held);
    assert_eq!(cpu.usage.free(), 4 * capacity_for::<f32>(1000));
}

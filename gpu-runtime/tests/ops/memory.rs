//! What an idle process gives back.

use trainyard_gpu_runtime::kernels::Cpu;
use trainyard_gpu_runtime::memory;

#[test]
fn buffers_that_are_not_in_use_are_given_back() {
    let cpu = Cpu::new(1);
    let held = cpu.buffer(1000);
    drop(cpu.buffer(5000));
    assert_eq!(cpu.usage.unused(), 4 * 5000);
    memory::give_back();
    assert_eq!((cpu.usage.unused(), held.len()), (0, 1000));
    drop(held);
    assert_eq!(cpu.usage.unused(), 4 * 1000);
}

use super::*;

#[test]
fn memory_is_reused_and_zeros_are_zeros() {
    let _pools = POOLS.read().unwrap_or_else(PoisonError::into_inner);
    let usage = Arc::new(BufferUsage::default());
    let buffers = BufferPool::<f32>::new(Arc::clone(&usage));
    let mut first = buffers.alloc(5000);
    first.fill(7.0);
    let address = first.as_ptr();
    drop(first);
    let second = buffers.alloc(4800);
    assert_eq!((second.as_ptr(), second.len(), second[0]), (address, 4800, 7.0));
    let other = buffers.alloc(4800);
    assert_ne!(other.as_ptr(), address);
    assert_eq!((usage.peak(), usage.in_use.load(Ordering::Relaxed)), (4 * 9600, 4 * 9600));
    drop((second, other));
    usage.reset_peak();
    assert_eq!(usage.peak(), 0);
    assert!(buffers.zeros(5000).iter().all(|x| *x == 0.0));
    // Far too large for ten elements.
    assert_eq!(buffers.alloc(10).data.len(), capacity_for::<f32>(10));
    buffers.trim();
    assert!(buffers.state.lock().by_len.is_empty());
}

/// Bytes of the free buffers, without those in front of their first cache lines.
fn total(buffers: &BufferPool<u8>) -> usize {
    let free = buffers.state.lock();
    let lens: Vec<usize> = free.by_len.values().flatten().map(|free| free.data.len()).collect();
    assert_eq!(lens.iter().sum::<usize>(), buffers.state.usage.free());
    lens.iter().map(|len| len - (capacity_for::<u8>(1) - 1)).sum()
}

#[test]
fn free_bytes_are_bounded() {
    let _pools = POOLS.read().unwrap_or_else(PoisonError::into_inner);
    let usage = Arc::new(BufferUsage::default());
    usage.limit_free(10_000);
    let (buffers, others) = (BufferPool::<u8>::new(Arc::clone(&usage)), BufferPool::<u32>::new(Arc::clone(&usage)));
    // A pass that uses more than the limit: as much as the limit is retained for the next one.
    for _ in 0..3 {
        drop((0..4).map(|_| buffers.alloc(4000)).collect::<Vec<_>>());
        assert_eq!(total(&buffers), 8000);
        usage.next_pass();
        buffers.evict_idle();
    }
    // One limit for all types.
    drop(others.alloc(1000));
    let held = usage.free();
    assert_eq!(held, total(&buffers) + 2 * (capacity_for::<u8>(1) - 1));
    drop(others.alloc(450));
    assert_eq!(usage.free(), held + 4 * capacity_for::<u32>(450));
}

#[test]
fn buffers_that_passes_do_not_use_are_evicted() {
    let _pools = POOLS.read().unwrap_or_else(PoisonError::into_inner);
    let usage = Arc::new(BufferUsage::default());
    let buffers = BufferPool::<u8>::new(Arc::clone(&usage));
    drop((buffers.alloc(5000), buffers.alloc(5000), buffers.alloc(70_000)));
    for _ in 0..MAX_IDLE_PASSES {
        usage.next_pass();
        buffers.evict_idle();
        drop(buffers.alloc(5000));
        assert_eq!(total(&buffers), 80_000);
    }
    usage.next_pass();
    buffers.evict_idle();
    assert_eq!(total(&buffers), 5000, "the one that every pass used");
    // At the limit it replaces older ones.
    usage.limit_free(20_000);
    drop(buffers.alloc(18_000));
    assert_eq!(total(&buffers), 18_000);
}

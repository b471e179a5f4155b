#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use trainyard_images::Size;

use super::super::testing::image;
use super::*;

const SETTINGS: &str = r#"{"image_processor_type": "Qwen2VLImageProcessorFast", "patch_size": 16, "merge_size": 2,
    "temporal_patch_size": 2, "size": {"shortest_edge": 1024, "longest_edge": 1048576}}"#;

fn preprocessor() -> Arc<Preprocessor> {
    Arc::new(Preprocessor::from_json(SETTINGS).unwrap())
}

fn pool(threads: usize, memory: u64) -> ImagePool {
    ImagePool::start(PoolSettings { threads, memory, limits: Limits::default() }).unwrap()
}

/// Images that count as different, of one file.
fn many(size: Size) -> Vec<Image> {
    let one = image(0, size);
    (0..200).map(|id| Image { digest: ImageDigest([id; 32]), ..one.clone() }).collect()
}

fn share(name: &str) -> TenantShare {
    TenantShare::new(name)
}

#[tokio::test]
async fn images_are_decoded_and_equal_ones_once() {
    let pool = pool(2, 1 << 20);
    let images = [image(1, Size::new(64, 32)), image(2, Size::new(32, 32)), image(1, Size::new(64, 32))];
    let decoded = pool.decode(&share("a"), &preprocessor(), &images).await.unwrap();
    let tokens: Vec<_> = decoded.values().map(|patches| patches.layout().tokens()).collect();
    assert_eq!(tokens, [2, 1]);
}

#[tokio::test]
async fn the_first_image_at_fault_is_named() {
    let pool = pool(1, 1 << 20);
    let size = Size::new(64, 32);
    let mut cut = image(7, size);
    cut.data = cut.data[..60].into();
    let images = [image(1, size), cut, image(3, size)];
    let found = pool.decode(&share("a"), &preprocessor(), &images).await.unwrap_err();
    assert_eq!((found.digest, found.error.category), (ImageDigest([7; 32]), trainyard_protocol::Category::User));
    assert!(found.error.message.contains("PNG file is"), "{}", found.error.message);
    // The pool goes on.
    assert!(pool.decode(&share("a"), &preprocessor(), &images[..1]).await.is_ok());
}

#[tokio::test]
async fn images_above_the_budget_are_decoded_one_by_one() {
    let pool = pool(3, 1);
    let images: Vec<_> = (0..6).map(|id| image(id, Size::new(96, 96))).collect();
    let decoded = pool.decode(&share("a"), &preprocessor(), &images).await.unwrap();
    assert_eq!(decoded.len(), 6);
    assert_eq!(pool.shared.lock().used, 0);
}

/// A job that waits for memory keeps its turn, and nothing starts beyond the budget.
#[test]
fn memory_bounds_what_is_decoded_at_once() {
    let shared = Shared { state: Mutex::default(), changed: Condvar::new(), memory: 100 };
    let add = |bytes: u64| {
        let (done, _) = oneshot::channel();
        let job = Job { image: image(0, Size::new(1, 1)), preprocessor: preprocessor(), bytes, done };
        shared.lock().queue.push(&share("a"), 1, job);
    };
    [60, 50, 10].into_iter().for_each(add);
    assert_eq!(shared.take().unwrap().bytes, 60);
    thread::scope(|scope| {
        let second = scope.spawn(|| shared.take().unwrap().bytes);
        thread::sleep(Duration::from_millis(50));
        assert!(!second.is_finished(), "60 + 50 bytes exceed 100");
        shared.lock().used -= 60;
        shared.changed.notify_all();
        assert_eq!(second.join().unwrap(), 50);
    });
    assert_eq!(shared.take().unwrap().bytes, 10);
    assert_eq!(shared.lock().used, 60);
}

/// While one tenant's images fill the queue, another tenant's image is decoded next.
#[tokio::test]
async fn a_tenants_backlog_delays_only_its_own_images() {
    let pool = Arc::new(pool(1, 1 << 30));
    let preprocessor = preprocessor();
    let many = many(Size::new(1024, 1024));
    let backlog = pool.decode(&share("a"), &preprocessor, &many);
    let own = [image(250, Size::new(32, 32))];
    pool.decode(&share("b"), &preprocessor, &own).await.unwrap();
    let waiting = std::iter::from_fn(|| pool.shared.lock().queue.pop()).count();
    assert!(waiting > 100, "{waiting} images of the other tenant still wait");
    drop(backlog);
}

#[tokio::test]
async fn images_that_nobody_waits_for_are_skipped_and_a_dropped_pool_ends() {
    let pool = pool(1, 1 << 30);
    let many = many(Size::new(2048, 2048));
    drop(pool.decode(&share("a"), &preprocessor(), &many));
    // Not after 200 images of 4 million pixels each.
    let decoding = pool.decode(&share("a"), &preprocessor(), &[image(201, Size::new(32, 32))]);
    tokio::time::timeout(Duration::from_secs(20), decoding).await.unwrap().unwrap();
    let unanswered = pool.decode(&share("a"), &preprocessor(), &many);
    drop(pool);
    assert!(unanswered.await.is_err());
}

//! The library has a thread of its own, so that it cannot be unloaded.

fn main() {
    println!("cargo::rustc-link-arg-cdylib=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}

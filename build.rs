//! Links the program of the dev profile to a fixed address: moving its 100 MB to another takes half the time of every start. What is
//! installed stays relocatable.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |key: &str, value: &str| std::env::var(key).is_ok_and(|found| found == value);
    let is_glibc = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if is("PROFILE", "debug") && is_glibc {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}

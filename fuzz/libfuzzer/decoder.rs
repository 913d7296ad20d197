//! Hands libFuzzer's inputs to the target that the variable `TARGET` names.
#![no_main]

use heda_fuzz::driver::Target;
use libfuzzer_sys::fuzz_target;

thread_local! {
    static CHOSEN: Target = {
        let name = std::env::var("TARGET").expect("TARGET is the name of a target");
        heda_fuzz::targets::find(&name).unwrap_or_else(|| panic!("no target {name}"))
    };
}

fuzz_target!(|input: &[u8]| {
    CHOSEN.with(|target| target.decode(input));
});

//! `ward` for tests: WARD_TEST_LAYERS_OFF names layers of its sandbox to leave out, so that a test
//! can show that they are what holds. It has a name of its own so that it is never taken for `ward`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    ward::main()
}

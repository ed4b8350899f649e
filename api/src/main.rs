//! The program `browserspace`; everything is in the library, so that tests can reach it.

fn main() -> std::process::ExitCode {
    api::cli::main()
}

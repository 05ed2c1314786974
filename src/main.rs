//! The `warmpool` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    warmpool::cli::main()
}

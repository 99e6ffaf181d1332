//! ```text
//! differential --cortado 127.0.0.1:5433 --postgres 127.0.0.1:5432 --seed 1 --count 100000
//! ```
//!
//! Prints the report. The exit code is 1 if there is a difference that no rule lists.

#![allow(clippy::disallowed_methods, reason = "a test program, at the edge")]

use std::process::ExitCode;

use clap::Parser;
use differential::Options;

fn main() -> ExitCode {
    let options = Options::parse();
    let report = match differential::run(&options) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    print!("{}", report.show());
    if let Some(folder) = &options.out
        && let Err(error) = report.write(folder)
    {
        eprintln!("{}: {error}", folder.display());
        return ExitCode::FAILURE;
    }
    if report.unlisted() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

//! Signals to the nodes of a demo.

use std::process::Command;

/// Sends a signal, such as `STOP`, to a process of this machine.
///
/// # Panics
/// If there is no such process.
pub fn signal(name: &str, process: u32) {
    let done = Command::new("kill").args(["-s", name, &process.to_string()]).status();
    assert!(done.is_ok_and(|status| status.success()), "cannot signal process {process}");
}

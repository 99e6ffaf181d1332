//! Three Cortado nodes as child processes of `cortado demo`.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use crate::System;

struct Cortado {
    demo: Child,
    port: u16,
}

/// Starts a demo cluster in a temporary directory and waits until it serves.
pub fn start() -> impl System {
    let port = free_port_range();
    let mut demo = Command::new(env!("CARGO_BIN_EXE_cortado"))
        .args(["demo", "--nodes", "3", "--pg-port", &port.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("Ctrl-C stops")), "the demo did not come up");
    // Whatever it says later must not fill the pipe.
    std::thread::spawn(move || lines.for_each(drop));
    Cortado { demo, port }
}

/// The demo takes 3 ports from here, and as many 1000 and 2000 above.
fn free_port_range() -> u16 {
    let free = |base: u16| {
        (0..3).all(|n| [0, 1000, 2000].iter().all(|up| TcpListener::bind(("127.0.0.1", base + up + n)).is_ok()))
    };
    (20_000..30_000).step_by(10).find(|base| free(*base)).expect("free ports")
}

impl System for Cortado {
    fn name(&self) -> &'static str {
        "cortado"
    }

    fn port(&self) -> u16 {
        self.port
    }

    fn servers(&self) -> Vec<u32> {
        let children = format!("/proc/{0}/task/{0}/children", self.demo.id());
        let text = std::fs::read_to_string(children).unwrap();
        text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
    }
}

impl Drop for Cortado {
    fn drop(&mut self) {
        // SIGTERM: the demo stops its nodes and removes their data.
        let _ = Command::new("kill").arg(self.demo.id().to_string()).status();
        let _ = self.demo.wait();
    }
}

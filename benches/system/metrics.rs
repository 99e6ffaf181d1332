//! The page with the metrics of a node, or of the proxies of a demo.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A page of metrics, in Prometheus' text format.
pub struct Page(String);

impl Page {
    /// Reads the page at a port of this machine.
    pub async fn read(port: u16) -> Page {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.write_all(b"GET /metrics HTTP/1.0\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).await.unwrap();
        Page(page)
    }

    /// The sum of the values whose name and labels begin so. `None` if there is none.
    pub fn sum(&self, name: &str) -> Option<f64> {
        let lines = self.0.lines().filter(|line| line.starts_with(name));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).reduce(|sum, value| sum + value)
    }
}

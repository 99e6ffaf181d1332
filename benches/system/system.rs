//! A running system that the benchmarks of whole systems measure.

/// A running system.
pub trait System {
    /// The name in the report.
    fn name(&self) -> &'static str;
    /// The port that the clients connect to.
    fn port(&self) -> u16;
    /// The process ids of its servers, the one at `port` first. CPU time includes their descendants.
    #[allow(dead_code, reason = "benches/expensive shares this file and measures no CPU time")]
    fn servers(&self) -> Vec<u32>;
    /// Whether it measures the same servers as the system before it, with their data.
    #[allow(dead_code, reason = "benches/expensive shares this file and has one system")]
    fn shares_data(&self) -> bool {
        false
    }
    /// The ports of the pages with the metrics of its servers, if they have such.
    #[allow(dead_code, reason = "only benches/tpcb reads metrics by way of this file")]
    fn metrics_ports(&self) -> Vec<u16> {
        Vec::new()
    }
    /// Stops all servers in order and starts them again with their data.
    #[allow(dead_code, reason = "benches/system shares this file and does not restart")]
    fn restart(&self);
}

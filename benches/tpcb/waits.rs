//! How long the clients of a system wait for row locks during a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use crate::client::connect;
use crate::metrics::Page;
use crate::system::System;

/// The time between two looks at PostgreSQL's sessions.
const LOOK: Duration = Duration::from_millis(10);
/// Sessions that wait for a lock, at this moment.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";

/// A measurement that has begun.
pub enum Waits {
    /// Counted by the servers: the ports of their metrics, and the sum before.
    Counted(Vec<u16>, Duration),
    /// Sampled.
    Sampled(Arc<AtomicBool>, JoinHandle<Duration>),
}

/// The seconds that requests have waited for row locks, at all servers.
async fn counted(ports: &[u16]) -> Duration {
    let mut sum = 0.0;
    for port in ports {
        sum += Page::read(*port).await.sum("cortado_kv_lock_wait_seconds_sum").expect("the metric");
    }
    Duration::from_secs_f64(sum)
}

impl Waits {
    pub async fn begin(system: &dyn System) -> Waits {
        let ports = system.metrics_ports();
        if !ports.is_empty() {
            let before = counted(&ports).await;
            return Waits::Counted(ports, before);
        }
        let client = connect(system.port()).await;
        let statement = client.prepare(WAITING).await.unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let sample = async move {
            let (mut waited, mut last) = (Duration::ZERO, Instant::now());
            while !is_over.load(Ordering::Relaxed) {
                tokio::time::sleep(LOOK).await;
                let waiting: i64 = client.query_one(&statement, &[]).await.unwrap().get(0);
                waited += last.elapsed() * u32::try_from(waiting).unwrap();
                last = Instant::now();
            }
            waited
        };
        Waits::Sampled(stop, tokio::spawn(sample))
    }

    /// The time that all clients together have waited.
    pub async fn end(self) -> Duration {
        match self {
            Waits::Counted(ports, before) => counted(&ports).await.saturating_sub(before),
            Waits::Sampled(stop, sample) => {
                stop.store(true, Ordering::Relaxed);
                sample.await.unwrap()
            }
        }
    }
}

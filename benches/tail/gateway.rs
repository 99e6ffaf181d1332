//! The node that the clients use: connections with their settings, the table, and its metrics.

use std::ops::Sub;

use tokio_postgres::Client;

use crate::client::connect;
use crate::metrics::Page;

/// The distance from a node's PostgreSQL port to its port for metrics.
const HTTP_OFFSET: u16 = 2000;

pub struct Gateway {
    port: u16,
    policy: String,
}

/// Counters of the gateway: answered reads that chose a replica, and hedges.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub reads: f64,
    pub sent: f64,
    pub won: f64,
    pub suppressed: f64,
}

impl Counts {
    pub fn since(self, before: Counts) -> Counts {
        let minus = |figure: fn(&Counts) -> f64| figure(&self).sub(figure(&before));
        Counts {
            reads: minus(|c| c.reads),
            sent: minus(|c| c.sent),
            won: minus(|c| c.won),
            suppressed: minus(|c| c.suppressed),
        }
    }
}

impl Gateway {
    pub fn new(first_port: u16, number: u16, policy: &str) -> Gateway {
        Gateway { port: first_port + number, policy: policy.to_owned() }
    }

    /// Connections whose reads choose replicas by the policy, and are hedged by `hedge`.
    pub async fn connect(&self, count: usize, hedge: &str) -> Vec<Client> {
        let mut clients = Vec::new();
        for _ in 0..count {
            let client = connect(self.port).await;
            let settings = format!("SET cortado.replica_read = '{}'; SET cortado.hedge = '{hedge}'", self.policy);
            client.batch_execute(&settings).await.unwrap();
            clients.push(client);
        }
        clients
    }

    /// Creates the table with `rows` rows of about 200 bytes.
    pub async fn prepare(&self, rows: i64) {
        let client = connect(self.port).await;
        client.batch_execute("CREATE TABLE tail (id bigint PRIMARY KEY, v text NOT NULL)").await.unwrap();
        let value = "v".repeat(200);
        for first in (1..=rows).step_by(500) {
            let values: Vec<String> =
                (first..(first + 500).min(rows + 1)).map(|id| format!("({id},'{value}')")).collect();
            client.batch_execute(&format!("INSERT INTO tail VALUES {}", values.join(","))).await.unwrap();
        }
    }

    /// Reads the counters from the metrics page.
    pub async fn counts(&self) -> Counts {
        let page = Page::read(self.port + HTTP_OFFSET).await;
        let sum = |name: &str| page.sum(name).unwrap_or_default();
        Counts {
            reads: sum("cortado_kv_client_replica_reads_total{"),
            sent: sum("cortado_kv_client_hedges_total{outcome=\"sent\""),
            won: sum("cortado_kv_client_hedges_total{outcome=\"won\""),
            suppressed: sum("cortado_kv_client_hedges_suppressed_total{"),
        }
    }
}

//! Generated statements answer as on PostgreSQL 15, where that is installed. `make differential` sends many more.

use clap::Parser;
use differential::Options;

use crate::exclusive::ClusterLock;
use crate::harness::Cluster;
use crate::isolation::Postgres;

/// Statements of all subjects, of one seed: some seconds.
const STATEMENTS: &str = "1000";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn generated_statements_answer_as_in_postgres() {
    let lock = ClusterLock::acquire();
    let Some(postgres) = Postgres::start() else {
        println!("PostgreSQL 15 is not installed: there is nothing to compare with");
        return;
    };
    let cluster = Cluster::start(&lock, 1).await;
    let [cortado, expected] = [cluster.nodes[0].pg, postgres.port()].map(|port| format!("127.0.0.1:{port}"));
    let addresses = ["differential", "--cortado", &cortado, "--postgres", &expected];
    let options = Options::parse_from(addresses.into_iter().chain(["--seed", "1", "--count", STATEMENTS]));
    let report = tokio::task::spawn_blocking(move || differential::run(&options)).await.unwrap().unwrap();
    assert_eq!(report.unlisted(), 0, "{}", report.show());
}

//! What an operator's tool asks of a node: to make another store the leader of a region.

use std::time::{Duration, Instant};

use tonic::Code;
use tonic::transport::Channel;

use self::proto::node_client::NodeClient;
use self::proto::{InfoRequest, TransferLeaderRequest};
use crate::harness::{Cluster, Node};
use crate::process::{POLL_INTERVAL, WAIT_TIMEOUT};

mod proto {
    #![allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic, reason = "generated")]
    tonic::include_proto!("cortado.node.v1");
}

impl Cluster {
    /// Makes a node the leader of the region.
    pub async fn make_leader(&self, region: u64, to: usize) {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        while self.leader_of(region) != to {
            assert!(Instant::now() < deadline, "node {} does not become the leader", to + 1);
            for node in &self.nodes {
                transfer(node, region, to as u64 + 1).await;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Makes the next node the leader of the region, `count` times, with `pause` after each.
    pub async fn pass_leadership_on(&self, region: u64, count: usize, pause: Duration) {
        for _ in 0..count {
            self.make_leader(region, (self.leader_of(region) + 1) % self.nodes.len()).await;
            tokio::time::sleep(pause).await;
        }
    }
}

async fn connect(node: &Node) -> NodeClient<Channel> {
    NodeClient::connect(format!("http://127.0.0.1:{}", node.listen)).await.expect("a node that runs")
}

/// Asks a node, which refuses unless it leads the region.
async fn transfer(node: &Node, region_id: u64, store_id: u64) {
    let mut client = connect(node).await;
    let cluster_id = client.info(InfoRequest {}).await.unwrap().into_inner().cluster_id;
    let asked = client.transfer_leader(TransferLeaderRequest { cluster_id, region_id, store_id }).await;
    let refused = |code| [Code::FailedPrecondition, Code::Unavailable].contains(&code);
    assert!(asked.as_ref().err().is_none_or(|status| refused(status.code())), "{asked:?}");
}

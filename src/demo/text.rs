//! What the demo prints once its nodes serve: how to connect, what to type, how far the regions are apart.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::distance::{Added, Measured, Plan};
use super::nodes::{Layout, NodeProcess};
use crate::console::show_line;

/// Nodes with a replica: the first three.
const REPLICAS: usize = 3;

/// The most pairs of regions that are named one by one.
const PAIRS_NAMED: usize = 6;

/// For a cluster without regions.
const ANYWHERE: &str = "
Try:
  CREATE TABLE t (id bigint PRIMARY KEY, v text);
  INSERT INTO t VALUES (1, 'one'), (2, 'two');      -- on one node
  SELECT * FROM t ORDER BY id;                      -- on another
  EXPLAIN SELECT * FROM t WHERE id = 1;
";

/// Statements for the region of the leader.
const AT_LEADER: &str = "  CREATE TABLE t (id bigint PRIMARY KEY, v text);
  INSERT INTO t VALUES (1, 'one'), (2, 'two');
";

/// Statements for a region with another replica.
const AT_FOLLOWER: &str = "  \\timing on
  SELECT * FROM t WHERE id = 1;              -- the leader answers, a round trip away
  SET cortado.replica_read = 'closest';
  SELECT * FROM t WHERE id = 1;              -- the replica here answers; its proof takes at most a round trip
  SHOW cortado.last_read;                    -- path, replica, round trips
  BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
  SELECT * FROM t WHERE id = 1;              -- the first read of a transaction: at most a round trip
  SELECT * FROM t WHERE id = 2;              -- later reads: none
  COMMIT;
  SET cortado.session_snapshot = on;
  SELECT * FROM t WHERE id = 1;              -- no round trip, and never older than what this session has seen
  SHOW cortado.last_read;
";

/// Prints everything.
pub(super) fn print_instructions(
    layout: &Layout,
    nodes: &[NodeProcess],
    measured: Option<&Measured>,
    is_temporary: bool,
) {
    let mut out = connections(layout, nodes);
    if let Some((plan, measured)) = layout.distance().zip(measured) {
        out += &distance(plan, measured);
    }
    match layout.regions().map(|regions| regions.names.as_slice()) {
        Some([leader, follower, ..]) => {
            // Writing to a String cannot fail.
            let _ = write!(out, "\nTry in {leader}:\n{AT_LEADER}\nThen in {follower}:\n{AT_FOLLOWER}");
        }
        _ => out += ANYWHERE,
    }
    out += &commands(layout, nodes);
    if is_temporary {
        out += "\nThe data is temporary and is deleted at exit; keep it with --data DIR.\n";
    }
    show_line(format_args!("{out}Ctrl-C stops all nodes."));
}

/// A line for each node.
fn connections(layout: &Layout, nodes: &[NodeProcess]) -> String {
    let mut out = "\nThe cluster is up. Every node accepts every statement:\n\n".to_string();
    let names = layout.regions().map(|regions| regions.names.as_slice());
    let width = names.into_iter().flatten().map(String::len).max().unwrap_or_default();
    for (place, node) in nodes.iter().enumerate() {
        let (number, port) = (node.number, node.pg.port());
        let _ = match names.and_then(|names| names.get(place)) {
            None => writeln!(out, "  node {number}   psql -h 127.0.0.1 -p {port} -U postgres"),
            Some(name) => {
                let holds = match place {
                    0 => "leads all tables",
                    1..REPLICAS => "follows",
                    _ => "has no replica",
                };
                writeln!(out, "  {name:width$}   psql -h 127.0.0.1 -p {port} -U postgres   # {holds}")
            }
        };
    }
    out
}

/// How far the regions are apart.
fn distance(plan: &Plan, measured: &Measured) -> String {
    let mut groups: BTreeMap<Duration, Vec<&Added>> = BTreeMap::new();
    for added in &measured.added {
        groups.entry(plan.round_trips[added.pair]).or_default().push(added);
    }
    let mut out = "\nDistance, as measured through the proxies between the nodes:\n\n".to_string();
    let is_one = groups.len() == 1;
    for (asked, pairs) in groups {
        let name = |added: &&Added| format!("{}-{}", plan.names[added.pair.0], plan.names[added.pair.1]);
        let of = match pairs.len() {
            _ if is_one => "all regions".to_string(),
            1..=PAIRS_NAMED => pairs.iter().map(name).collect::<Vec<_>>().join(", "),
            number => format!("{number} pairs"),
        };
        let mut times: Vec<f64> = pairs.iter().map(|added| added.time.as_secs_f64() * 1e3).collect();
        times.sort_by(f64::total_cmp);
        let (least, most) = (times.first().copied().unwrap_or_default(), times.last().copied().unwrap_or_default());
        let added = if most - least < 0.05 { format!("{most:.1}") } else { format!("{least:.1} to {most:.1}") };
        let _ = writeln!(out, "  {of}: added round trip {added} ms (asked {} ms)", asked.as_millis());
    }
    if let Some((asked, [there, back])) = plan.bandwidth.zip(measured.bandwidth) {
        let (there, back) = (there / 1e6, back / 1e6);
        let _ = writeln!(
            out,
            "  {} to {}: {there:.0} Mbit/s, back {back:.0} Mbit/s (asked {asked} each way)",
            plan.names[0], plan.names[1]
        );
    }
    out
}

/// Commands for the shell.
fn commands(layout: &Layout, nodes: &[NodeProcess]) -> String {
    let mut out = String::new();
    if let Some(node) = nodes.first() {
        let _ = writeln!(out, "\n  cortado status --host {}         nodes, regions, leaders", node.listen);
        let _ = writeln!(out, "  curl http://{}/metrics         metrics", node.http);
    }
    if let Some(metrics) = layout.metrics() {
        let _ = writeln!(out, "  curl http://{metrics}/metrics         bytes between regions");
    }
    if nodes.len() >= 3 {
        let pids: Vec<String> = nodes.iter().filter_map(|n| n.child.id()).map(|id| id.to_string()).collect();
        let _ = writeln!(out, "  kill -9 ONE OF {}                 the other nodes continue", pids.join(" "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::distance::pairs::Pairs;
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn said(round_trips: [u32; 3], added: [u64; 3]) -> String {
        // Of the pairs a-b, a-c and b-c.
        let asked = Pairs::new(3, |a, b| if a == b { Duration::ZERO } else { round_trips[a + b - 1] * MS });
        let names = ["a", "b", "c"].map(str::to_string).to_vec();
        let plan = Plan { names, round_trips: asked, bandwidth: "297Mbit".parse().ok() };
        let added = [(0, 1), (0, 2), (1, 2)].into_iter().zip(added.map(Duration::from_micros));
        let added = added.map(|(pair, time)| Added { pair, time }).collect();
        distance(&plan, &Measured { added, bandwidth: Some([295.6e6, 297.1e6]) })
    }

    #[test]
    fn the_distance_is_shown_as_asked_and_measured() {
        let same = said([28, 28, 28], [28_040, 28_300, 28_090]);
        assert!(same.contains("  all regions: added round trip 28.0 to 28.3 ms (asked 28 ms)\n"), "{same}");
        assert!(same.contains("  a to b: 296 Mbit/s, back 297 Mbit/s (asked 297 Mbit/s each way)\n"), "{same}");
        let different = said([28, 230, 28], [28_040, 230_020, 28_060]);
        assert!(different.contains("  a-b, b-c: added round trip 28.1 ms (asked 28 ms)\n"), "{different}");
        assert!(different.contains("  a-c: added round trip 230.0 ms (asked 230 ms)\n"), "{different}");
    }
}

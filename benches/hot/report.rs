//! Medians, the table for `docs/benchmarks.md`, and the chart.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;

use crate::POLICIES;
use crate::bars::{Bars, Scale};
use crate::load::Workload;
use crate::median::median;

/// The figures of one run, or the medians of several.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    pub per_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub leader_cores: f64,
    /// Of both followers.
    pub follower_cores: f64,
    pub client_cores: f64,
    pub errors: f64,
}

const EACH: [fn(&Figures) -> f64; 7] = [
    |f| f.per_second,
    |f| f.p50_ms,
    |f| f.p99_ms,
    |f| f.leader_cores,
    |f| f.follower_cores,
    |f| f.client_cores,
    |f| f.errors,
];

impl Figures {
    fn median(runs: &[Figures]) -> Figures {
        let [per_second, p50_ms, p99_ms, leader_cores, follower_cores, client_cores, errors] =
            EACH.map(|figure| median(runs.iter().map(figure)));
        Figures { per_second, p50_ms, p99_ms, leader_cores, follower_cores, client_cores, errors }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { per_second, p50_ms, p99_ms, leader_cores, follower_cores, client_cores, errors } = self;
        write!(f, "{per_second:.0}/s p50 {p50_ms:.2} ms p99 {p99_ms:.2} ms, cores: leader {leader_cores:.2}, ")?;
        write!(f, "followers {follower_cores:.2}, clients {client_cores:.2}; {errors} error(s)")
    }
}

/// The median of a policy, and its rate over that of the first policy; `None` if it was not run.
type Row = Option<(Figures, f64)>;

/// All runs, by workload and policy.
#[derive(Default)]
pub struct Report(BTreeMap<(Workload, &'static str), Vec<Figures>>);

impl Report {
    pub fn add(&mut self, workload: Workload, policy: &'static str, figures: Figures) {
        self.0.entry((workload, policy)).or_default().push(figures);
    }

    /// The medians of each workload, in the order of the policies, with the ratio of the rate over the first policy,
    /// which reads at the leader only.
    fn rows(&self) -> Vec<(Workload, Vec<Row>)> {
        let mut workloads: Vec<Workload> = self.0.keys().map(|(workload, _)| *workload).collect();
        workloads.dedup();
        let of_workload = |workload| {
            let medians = POLICIES.map(|policy| self.0.get(&(workload, policy)).map(|runs| Figures::median(runs)));
            let leader = medians[0].map_or(f64::NAN, |figures| figures.per_second);
            let with_ratio = |figures: Figures| (figures, figures.per_second / leader);
            (workload, medians.into_iter().map(|figures| figures.map(with_ratio)).collect())
        };
        workloads.into_iter().map(of_workload).collect()
    }

    pub fn to_markdown(&self) -> String {
        let mut out = String::from(
            "| reads | replica_read | reads/s | over leader | p50 ms | p99 ms | cores: leader + followers + clients \
             | errors |\n|---|---|---:|---:|---:|---:|---|---:|\n",
        );
        for (workload, policies) in self.rows() {
            for (policy, row) in POLICIES.iter().zip(policies) {
                let Some((f, ratio)) = row else { continue };
                // Writing to a String cannot fail.
                let _ = writeln!(
                    out,
                    "| {} | {policy} | {:.0} | {ratio:.2} | {:.2} | {:.2} | {:.2} + {:.2} + {:.2} | {:.0} |",
                    workload.name(),
                    f.per_second,
                    f.p50_ms,
                    f.p99_ms,
                    f.leader_cores,
                    f.follower_cores,
                    f.client_cores,
                    f.errors
                );
            }
        }
        out
    }

    /// The rates over that of the leader alone, as bars.
    pub fn to_svg(&self, cores: f64) -> String {
        let title = format!("Reads per second over reads at the leader only, {cores} core for each node");
        let mut bars = Bars::new(title, Scale::Linear, &POLICIES);
        for (workload, policies) in self.rows() {
            let bar = |(figures, ratio): (Figures, f64)| (ratio, format!("{ratio:.2}x ({:.0}/s)", figures.per_second));
            bars.group(workload.name(), policies.into_iter().map(|row| row.map(bar)));
        }
        bars.svg()
    }
}

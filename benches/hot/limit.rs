//! A limit on the processor time of each node: a control group with a quota for each, of version 2 or 1, whatever the
//! machine has. Needs to be root.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The controllers of version 2 and of version 1.
const V2: &str = "/sys/fs/cgroup";
const V1: &str = "/sys/fs/cgroup/cpu";
/// The time over which a quota counts. Containers often have 100 ms. Then a node that has used its quota up stands
/// still for most of that time, and so do those that wait for it; a slower processor does not. The shorter the time,
/// the more a quota is like one.
const PERIOD_US: u32 = 10_000;

/// The groups of the nodes. Dropping it removes them: their processes go back to the group above.
pub struct Limits {
    root: &'static str,
    groups: Vec<PathBuf>,
}

impl Limits {
    /// Lets each of these processes, and its threads and children, use so many cores at most.
    ///
    /// # Errors
    /// The machine has no controller of processor time, or this process may not use it.
    pub fn new(processes: &[u32], cores: f64) -> io::Result<Limits> {
        let is_v2 = fs::read_to_string(format!("{V2}/cgroup.controllers"));
        let is_v2 = is_v2.is_ok_and(|names| names.split_whitespace().any(|name| name == "cpu"));
        let root = if is_v2 { V2 } else { V1 };
        let quota = (cores * f64::from(PERIOD_US)) as u32;
        if is_v2 {
            write(Path::new(V2), "cgroup.subtree_control", "+cpu")?;
        }
        let mut limits = Limits { root, groups: Vec::new() };
        for process in processes {
            let group = Path::new(root).join(format!("cortado-hot-{process}"));
            fs::create_dir(&group).map_err(|error| at(&group, error))?;
            limits.groups.push(group.clone());
            if is_v2 {
                write(&group, "cpu.max", &format!("{quota} {PERIOD_US}"))?;
            } else {
                write(&group, "cpu.cfs_period_us", &PERIOD_US.to_string())?;
                write(&group, "cpu.cfs_quota_us", &quota.to_string())?;
            }
            write(&group, "cgroup.procs", &process.to_string())?;
        }
        Ok(limits)
    }

    /// The share of periods in which each process used up its quota, since the groups were made.
    pub fn throttled(&self) -> Vec<f64> {
        let of_group = |group: &PathBuf| {
            let stat = fs::read_to_string(group.join("cpu.stat")).unwrap_or_default();
            let value = |name: &str| -> Option<f64> {
                stat.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
            };
            value("nr_throttled ").zip(value("nr_periods ")).map_or(0.0, |(part, whole)| part / whole.max(1.0))
        };
        self.groups.iter().map(of_group).collect()
    }
}

impl Drop for Limits {
    fn drop(&mut self) {
        for group in &self.groups {
            // What cannot be removed stays until the machine restarts. It holds nothing.
            let members = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            members.lines().for_each(|process| drop(write(Path::new(self.root), "cgroup.procs", process)));
            let _ = fs::remove_dir(group);
        }
    }
}

fn write(group: &Path, file: &str, value: &str) -> io::Result<()> {
    let path = group.join(file);
    fs::write(&path, value).map_err(|error| at(&path, error))
}

fn at(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
